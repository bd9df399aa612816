//! [`PlannedOperation`]: what one operation does; [`Context`]: what all operations are planned against; [`Faults`]: mistakes
//! that many tensors share.

use std::collections::BTreeMap;

use super::action::{Action, Edit, TensorRef};
use super::donor::Donors;
use super::ids::DonorId;
use super::scope::{Facts, Unit, What};
use super::working_precision::{self, Class};
use crate::checkpoint::{Checkpoint, Key, ModelConfig, TensorId, TensorIndex, TensorInfo};
use crate::diagnostic::{Code, Diagnostic, words};
use crate::surgery::Spanned;

/// What every operation is planned against. Nothing in it changes while operations are planned, in parallel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    /// The checkpoint.
    pub base: &'a Checkpoint,
    /// How each reached tensor is packed.
    pub facts: &'a Facts<'a>,
    /// The donors that opened.
    pub donors: &'a Donors,
}

impl<'a> Context<'a> {
    /// The base's index.
    pub(super) fn index(&self) -> &'a TensorIndex {
        &self.base.weights.index
    }

    /// The base's config.
    pub(super) fn config(&self) -> &'a ModelConfig {
        &self.base.config
    }

    /// A tensor's key and header entry.
    pub(super) fn entry(&self, id: TensorId) -> (&'a Key, &'a TensorInfo) {
        let (key, info) = &self.index()[id];
        (key, info)
    }

    /// A tensor's key.
    pub(super) fn key(&self, id: TensorId) -> &'a str {
        self.entry(id).0.as_str()
    }
}

/// One operation, planned.
#[derive(Debug, Default)]
pub(super) struct PlannedOperation {
    /// What it does: at most one edit a tensor.
    pub edits: Vec<Edit>,
    /// Number of matched keys that are edited, where it is not all of them (`prune`).
    pub acted: Option<usize>,
    /// The tensors it is meant for, whether or not a donor has its side (not of `prune`).
    pub targets: Vec<TensorId>,
    /// What it does to attention heads, if it zeroes any.
    pub heads: Option<PrunedHeads>,
    /// Donor tensors that it uses.
    pub reached: Vec<(DonorId, TensorId)>,
    /// Its mistakes and what else was found while planning it.
    pub diagnostics: Vec<Diagnostic>,
}

/// What a `prune` of attention heads leaves behind or changes besides, for lints.
#[derive(Debug, Default)]
pub(super) struct PrunedHeads {
    /// The heads, ascending.
    pub ids: Vec<u64>,
    /// Modules whose `q_proj` is zeroed and whose `o_proj` is not matched.
    pub without_output: Vec<WithoutOutput>,
    /// Norms that span all heads.
    pub norms: Vec<TensorId>,
    /// Biases of zeroed queries that are not matched.
    pub biases: Vec<TensorId>,
    /// Matched keys of `k_proj` and `v_proj`.
    pub kv_keys: usize,
}

/// An attention module whose `o_proj` is not matched.
#[derive(Debug)]
pub(super) struct WithoutOutput {
    /// The module's path.
    pub parent: String,
    /// The tensors of its `o_proj`.
    pub output: Vec<TensorId>,
}

impl PlannedOperation {
    /// Adds an edit.
    pub(super) fn edit(&mut self, target: TensorId, action: Action) {
        self.edits.push(Edit { target, action });
    }

    /// Counts matched keys that are edited.
    pub(super) fn acts_on(&mut self, keys: usize) {
        *self.acted.get_or_insert_default() += keys;
    }

    /// Adds a diagnostic about the operation.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Records that a donor tensor is used, and returns the reference to it.
    pub(super) fn uses(&mut self, donor: DonorId, id: TensorId, key: &Key) -> TensorRef {
        self.reached.push((donor, id));
        TensorRef { donor, key: key.clone() }
    }
}

/// Mistakes, each with the tensors (or modules) that have it, so that it is one message however many they are.
#[derive(Debug, Default)]
pub(super) struct Faults {
    found: BTreeMap<(Code, String), Found>,
}

#[derive(Debug)]
struct Found {
    help: String,
    names: Vec<(String, String)>,
}

impl Faults {
    /// Adds one more `name` with a mistake.
    pub(super) fn add(&mut self, code: Code, reason: impl Into<String>, help: impl Into<String>, name: &str) {
        self.add_detail(code, reason, help, name, "");
    }

    /// The same, with something in parentheses after the name.
    pub(super) fn add_detail(
        &mut self,
        code: Code,
        reason: impl Into<String>,
        help: impl Into<String>,
        name: &str,
        detail: &str,
    ) {
        let entry = self.found.entry((code, reason.into()));
        let found = entry.or_insert_with(|| Found { help: help.into(), names: Vec::new() });
        found.names.push((name.to_owned(), detail.to_owned()));
    }

    /// The same, with a help that is made for the first name only.
    pub(super) fn add_with(&mut self, code: Code, reason: String, name: &str, help: impl FnOnce() -> String) {
        let entry = self.found.entry((code, reason));
        let found = entry.or_insert_with(|| Found { help: help(), names: Vec::new() });
        found.names.push((name.to_owned(), String::new()));
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// One diagnostic for each mistake, labelled at `place`.
    pub(super) fn report<T>(self, planned: &mut PlannedOperation, place: &Spanned<T>) {
        for ((code, reason), found) in self.found {
            let names = found.names.iter().map(|(name, detail)| (name.as_str(), detail.as_str()));
            let message = format!("{reason}: {}", words::names_with_details(names, found.names.len()));
            planned.report(place.label_at_use(Diagnostic::new(code, message).help(found.help), ""));
        }
    }
}

/// Reports a parameter that is not finite in the working precision of some targets; returns whether all are fine.
pub(super) fn finite(
    context: &Context<'_>,
    planned: &mut PlannedOperation,
    field: &str,
    parameter: &Spanned<f64>,
    targets: impl Iterator<Item = TensorId>,
) -> bool {
    for target in targets {
        let (key, info) = context.entry(target);
        if working_precision::working(info.dtype, parameter.value).is_none() {
            let message = format!(
                "`{field}` is not finite in {}, the working precision of `{key}` ({})",
                working_precision::precision(info.dtype),
                info.dtype,
            );
            let diagnostic = Diagnostic::new(Code::NotFinite, message)
                .help("use a number that f32 can hold, below about 3.4e38");
            planned.report(parameter.label_at_use(diagnostic, ""));
            return false;
        }
    }
    true
}

/// Adds a unit that no operation can edit in place to the faults; returns whether it was one.
pub(super) fn unusable(context: &Context<'_>, unit: &Unit, faults: &mut Faults) -> bool {
    let (key, info) = context.entry(unit.first);
    match &unit.what {
        What::Incomplete(reason) => faults.add(
            Code::IncompleteAffineSet,
            incomplete(key.stem(), reason),
            "repair the checkpoint (a quantized module needs matching `.weight`, `.scales` and `.biases`), or \
             `exclude` the module",
            key.stem(),
        ),
        What::Foreign(name) => faults.add(
            Code::UnsupportedQuantization,
            format!("tensors quantized as {name} cannot be edited"),
            "`exclude` these tensors, or use a checkpoint that is dense or has affine quantization",
            key.as_str(),
        ),
        What::Plain(Class::Unloadable) => faults.add_detail(
            Code::ModelUnreadable,
            "the model has tensors of a dtype that MLX cannot load",
            "convert the tensors to F32, F16 or BF16, or `exclude` them",
            key.as_str(),
            &info.dtype.to_string(),
        ),
        What::Plain(_) | What::Set { .. } => return false,
    }
    true
}

/// Why a set is incomplete, without its own name, so that many are one message.
pub(super) fn incomplete(module: &str, reason: &str) -> String {
    let own = format!("`{module}` ");
    format!("a quantized module {}", reason.strip_prefix(&own).unwrap_or(reason))
}
