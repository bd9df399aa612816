//! The one door: a plan in, a model out. Every command that computes comes through here, so that none can bypass
//! surgery; a plan of no operations and no file at all are the same path.
//!
//! ```text
//! Plan ─▶ lazy tensors ─▶ trial build (shapes only) ─▶ surgery ─▶ the text model's names
//!      ─▶ build: each tensor read, cast, settled ─▶ Loaded
//! ```

use std::time::{Duration, Instant};

use crate::checkpoint::{Checkpoint, Origin, Packing, UNNAMED_FLOATS, packing};
use crate::diagnostic::{Code, Diagnostic};
use crate::execute::Report;
use crate::mlx;
use crate::model::{self, Model};
use crate::plan::Plan;
use crate::weights::{
    Holdings, Kept, Policy, Precision, Progress, WeightMap, broken, check_limit, total_memory,
};

/// How to load.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// `--dtype`.
    pub precision: Precision,
}

/// A model ready to compute, every weight settled in memory: it may move to another thread.
#[derive(Debug)]
pub struct Loaded {
    /// What computes.
    pub model: Box<dyn Model>,
    /// The plan that was carried out, with the checkpoint's configuration.
    pub plan: Plan,
    /// What the surgery did.
    pub report: Report,
    /// What the dtype policy decided.
    pub policy: Policy,
    /// How long it took.
    pub timings: Timings,
}

/// How long loading took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timings {
    /// Running the plan's programs.
    pub surgery: Duration,
    /// Everything, surgery included.
    pub total: Duration,
}

/// Loads a model with a plan applied. `progress` hears of bytes of weights, up to its total.
///
/// # Errors
/// A configuration or tensors that no family answers to, found before a weight is read; files that changed or cannot
/// be read; results that are not finite. Nothing is loaded then.
pub fn load(
    plan: Plan,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Loaded, Vec<Diagnostic>> {
    match carry_out(&plan, options, progress, None) {
        Ok((model, report, policy, timings)) => Ok(Loaded { model, plan, report, policy, timings }),
        Err(diagnostic) => Err(vec![diagnostic]),
    }
}

/// Loads a model with a plan applied, and the same without: both share every tensor that the plan leaves alone.
///
/// # Errors
/// As [`load`].
pub fn load_beside(
    plan: Plan,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Loaded, Box<dyn Model>), Vec<Diagnostic>> {
    let mut kept = Kept::beside(&plan);
    let mut both = || {
        let (model, report, policy, timings) = carry_out(&plan, options, progress, Some(&mut kept))?;
        let checkpoint = plan.base();
        let weights = WeightMap::open(checkpoint)?.text_model(&checkpoint.config)?;
        let weights = weights.settling_beside(policy.clone(), progress, &mut kept);
        let base = model::build(&checkpoint.config, weights)?;
        unchanged(checkpoint)?;
        Ok((model, report, policy, timings, base))
    };
    match both() {
        Ok((model, report, policy, timings, base)) => {
            Ok((Loaded { model, plan, report, policy, timings }, base))
        }
        Err(diagnostic) => Err(vec![diagnostic]),
    }
}

fn carry_out(
    plan: &Plan,
    options: Options,
    progress: &mut dyn FnMut(Progress),
    kept: Option<&mut Kept>,
) -> Result<(Box<dyn Model>, Report, Policy, Timings), Diagnostic> {
    let start = Instant::now();
    let checkpoint = plan.base();
    refuse_foreign_packing(checkpoint)?;
    let holdings = Holdings::of(checkpoint);
    check_limit(needed(checkpoint, options, &holdings))?;

    let weights = WeightMap::open(checkpoint)?;
    // Surgery keeps keys, shapes and dtypes, so a model that can be built of the stored tensors can be built of the
    // edited ones: whatever does not fit is found here, before a weight is read.
    let config = &checkpoint.config;
    drop(model::build(config, weights.trial().text_model(config)?)?);

    let operating = Instant::now();
    let (weights, report) = weights.operate(plan, progress)?;
    let weights = weights.text_model(config)?;
    let surgery = operating.elapsed();

    let finite = || weights.is_finite_in_f16().map_err(|error| broken(&error));
    let policy = Policy::decide(options.precision, mlx::device(), &holdings, total_memory(), finite)?;
    let weights = match kept {
        Some(kept) => weights.settling_beside(policy.clone(), progress, kept),
        None => weights.settling(policy.clone(), progress),
    };
    let model = model::build(config, weights)?;
    unchanged(checkpoint)?;
    Ok((model, report, policy, Timings { surgery, total: start.elapsed() }))
}

/// Bytes of addresses that the weights take at least, whatever the dtype policy decides: as f32, or as they are stored.
fn needed(checkpoint: &Checkpoint, options: Options, holdings: &Holdings) -> u64 {
    let entries = checkpoint.weights.index.entries().iter();
    let stored = entries.filter_map(|(_, info)| match &info.origin {
        Origin::Stored { range, .. } => Some(range.end - range.start),
        Origin::Tied(_) => None,
    });
    let stored = stored.sum();
    if options.precision == Precision::F32 { holdings.f32_bytes.max(stored) } else { stored }
}

/// Packed weights are known by their tensors; methods that MLX does not have announce themselves in the configuration
/// or by tensors of their own.
fn refuse_foreign_packing(checkpoint: &Checkpoint) -> Result<(), Diagnostic> {
    let (index, config) = (&checkpoint.weights.index, &checkpoint.config);
    let refuse = |method: &str, what: &str| {
        let message = format!("{what} is quantized as `{method}`, which cannot be run");
        Err(Diagnostic::new(Code::UnsupportedQuantization, message)
            .help("use the unquantized checkpoint, or a conversion in one of MLX's formats"))
    };
    let known = |method: &str| matches!(method, "affine" | "mxfp4" | "mxfp8" | "nvfp4");
    let foreign = |position: usize| match packing(index, config, position) {
        Packing::Foreign(method) if !known(&method) && method != UNNAMED_FLOATS => Some(method),
        _ => None,
    };
    for (position, (key, _)) in index.entries().iter().enumerate() {
        if config.text_key(key).is_some()
            && let Some(method) = foreign(position)
        {
            return refuse(&method, &format!("`{key}`"));
        }
    }
    match config.quantization.as_ref().and_then(|quantization| quantization.mode.as_deref()) {
        Some(method) if !known(method) => refuse(method, "the checkpoint"),
        _ => Ok(()),
    }
}

/// Checks that what MLX has read lazily is what was planned with.
fn unchanged(checkpoint: &Checkpoint) -> Result<(), Diagnostic> {
    for shard in &checkpoint.weights.shards {
        if !shard.unchanged().unwrap_or(false) {
            let message = format!("`{}` changed while it was read", shard.path.display());
            return Err(Diagnostic::new(Code::FileChanged, message)
                .help("run again when nothing writes to the model"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
