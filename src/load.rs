//! Loads a model with a plan applied. Every command that computes loads here, so that none can bypass surgery; a plan
//! without operations and no surgery file take the same path.
//!
//! ```text
//! Plan ─▶ lazy tensors ─▶ trial build (shapes only) ─▶ surgery ─▶ the text model's names
//!      ─▶ build: each tensor read, cast, settled ─▶ Loaded
//! ```

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::checkpoint::{Checkpoint, Origin, Packing, TensorId, UNNAMED_FLOATS, packing};
use crate::execute::Report;
use crate::mlx;
use crate::model::{self, Model, ModelError};
use crate::plan::Plan;
use crate::weights::{
    CheckpointFacts, Policy, Precision, Progress, SharedWeights, WeightMap, WeightsError, check_limit,
    total_memory,
};

/// Options of loading.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// `--dtype`.
    pub precision: Precision,
}

/// A model ready to compute. Every weight is evaluated, so it may move to another thread.
#[derive(Debug)]
pub struct Loaded {
    /// The model.
    pub model: Box<dyn Model>,
    /// The plan that was executed, with the checkpoint's configuration.
    pub plan: Plan,
    /// The report of the surgery.
    pub report: Report,
    /// The dtype policy.
    pub policy: Policy,
    /// Time it took.
    pub timings: Timings,
}

/// Time that loading took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timings {
    /// Time to run the plan's programs.
    pub surgery: Duration,
    /// Total time, surgery included.
    pub total: Duration,
}

/// Why a model cannot be loaded. Nothing is loaded then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The weights are quantized by a method that MLX does not have.
    #[error("{what} is quantized as `{method}`, which cannot be run")]
    ForeignQuantization {
        /// A tensor in backticks, or the checkpoint.
        what: String,
        /// The method.
        method: String,
    },
    /// No model can be built from the checkpoint, or its weights cannot be loaded.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A file changed after it was planned with.
    #[error("`{}` changed while it was read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl From<WeightsError> for LoadError {
    fn from(error: WeightsError) -> Self {
        ModelError::from(error).into()
    }
}

/// Loads a model with a plan applied. `progress` receives the bytes of weights done and their total.
///
/// # Errors
/// A configuration or tensors that no family supports, found before a weight is read; files that changed or cannot be
/// read; results that are not finite.
pub fn load(plan: Plan, options: Options, progress: &mut dyn FnMut(Progress)) -> Result<Loaded, LoadError> {
    let (model, report, policy, timings) = execute(&plan, options, progress, None)?;
    Ok(Loaded { model, plan, report, policy, timings })
}

/// Loads a model with a plan applied, and the same model without: both share every tensor that the plan leaves alone.
///
/// # Errors
/// As [`load`].
pub(crate) fn load_beside(
    plan: Plan,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Loaded, Box<dyn Model>), LoadError> {
    let mut shared = SharedWeights::beside(&plan);
    let (model, report, policy, timings) = execute(&plan, options, progress, Some(&mut shared))?;
    let checkpoint = plan.base();
    let weights = WeightMap::open(checkpoint)?.text_model(&checkpoint.config)?;
    let weights = weights.settling_beside(policy.clone(), progress, &mut shared);
    let base = model::build(&checkpoint.config, weights)?;
    unchanged(checkpoint)?;
    Ok((Loaded { model, plan, report, policy, timings }, base))
}

fn execute(
    plan: &Plan,
    options: Options,
    progress: &mut dyn FnMut(Progress),
    shared: Option<&mut SharedWeights>,
) -> Result<(Box<dyn Model>, Report, Policy, Timings), LoadError> {
    let start = Instant::now();
    let checkpoint = plan.base();
    refuse_foreign_packing(checkpoint)?;
    let facts = CheckpointFacts::of(checkpoint);
    check_limit(needed(checkpoint, options, &facts)).map_err(WeightsError::from)?;

    let weights = WeightMap::open(checkpoint)?;
    // Surgery keeps keys, shapes and dtypes, so a model that can be built from the stored tensors can be built from the
    // edited ones: this finds whatever does not fit before a weight is read.
    let config = &checkpoint.config;
    drop(model::build(config, weights.trial().text_model(config)?)?);

    let operating = Instant::now();
    let (weights, report) = weights.operate(plan, progress)?;
    let weights = weights.text_model(config)?;
    let surgery = operating.elapsed();

    let finite = || weights.is_finite_in_f16().map_err(WeightsError::from);
    let policy = Policy::decide(options.precision, mlx::device(), &facts, total_memory(), finite)?;
    let weights = match shared {
        Some(shared) => weights.settling_beside(policy.clone(), progress, shared),
        None => weights.settling(policy.clone(), progress),
    };
    let model = model::build(config, weights)?;
    unchanged(checkpoint)?;
    Ok((model, report, policy, Timings { surgery, total: start.elapsed() }))
}

/// Minimum bytes of address space for the weights: as f32 if that was asked for, else as they are stored.
fn needed(checkpoint: &Checkpoint, options: Options, facts: &CheckpointFacts) -> u64 {
    let entries = checkpoint.weights.index.entries().iter();
    let stored = entries.filter_map(|(_, info)| match &info.origin {
        Origin::Stored { range, .. } => Some(range.end - range.start),
        Origin::Tied(_) => None,
    });
    let stored = stored.sum();
    if options.precision == Precision::F32 { facts.f32_bytes.max(stored) } else { stored }
}

/// Refuses quantization methods that MLX does not have. They show in the configuration or by tensors of their own.
fn refuse_foreign_packing(checkpoint: &Checkpoint) -> Result<(), LoadError> {
    let (index, config) = (&checkpoint.weights.index, &checkpoint.config);
    let refuse =
        |method: &str, what: String| Err(LoadError::ForeignQuantization { what, method: method.to_owned() });
    let known = |method: &str| matches!(method, "affine" | "mxfp4" | "mxfp8" | "nvfp4");
    let foreign = |id: TensorId| match packing(index, config, id) {
        Packing::Foreign(method) if !known(&method) && method != UNNAMED_FLOATS => Some(method),
        _ => None,
    };
    for (id, (key, _)) in index.ids().zip(index.entries()) {
        if config.text_key(key).is_some()
            && let Some(method) = foreign(id)
        {
            return refuse(&method, format!("`{key}`"));
        }
    }
    match config.quantization.as_ref().and_then(|quantization| quantization.mode.as_deref()) {
        Some(method) if !known(method) => refuse(method, "the checkpoint".to_owned()),
        _ => Ok(()),
    }
}

/// Checks that the files that MLX read lazily have not changed since planning.
fn unchanged(checkpoint: &Checkpoint) -> Result<(), LoadError> {
    for shard in &checkpoint.weights.shards {
        if !shard.unchanged().unwrap_or(false) {
            return Err(LoadError::Changed { path: shard.path.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
