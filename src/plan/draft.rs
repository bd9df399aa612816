//! [`Draft`]: one operation while it is planned; [`Context`]: what all operations are planned against.

use std::collections::BTreeMap;

use super::donor::Donors;
use super::near::Vocabulary;
use super::number::{self, Class};
use super::others::Others;
use super::scope::{Facts, Unit, What};
use super::{Action, Edit, TensorRef};
use crate::checkpoint::{Checkpoint, Key, ModelConfig, TensorIndex, TensorInfo};
use crate::diagnostic::{Code, Diagnostic, words};
use crate::surgery::{Spanned, SurgeryFile};

/// What every operation is planned against. Nothing in it changes while operations are planned, in parallel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    /// The file.
    pub file: &'a SurgeryFile,
    /// The checkpoint.
    pub base: &'a Checkpoint,
    /// What the other operations reach.
    pub others: &'a Others<'a>,
    /// How each reached tensor is packed.
    pub facts: &'a Facts<'a>,
    /// The donors that opened.
    pub donors: &'a Donors,
    /// The base's names, for suggestions.
    pub vocabulary: &'a Vocabulary<'a>,
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

    /// The key and header entry at a position.
    pub(super) fn entry(&self, position: usize) -> (&'a Key, &'a TensorInfo) {
        let (key, info) = &self.index().entries()[position];
        (key, info)
    }

    /// The key at a position.
    pub(super) fn key(&self, position: usize) -> &'a str {
        self.entry(position).0.as_str()
    }
}

/// One operation while it is planned.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// What it does.
    pub edits: Vec<Edit>,
    /// Matched keys that the edits stand for, where it is not all of them (`prune`).
    pub acted: usize,
    /// Donor tensors that it uses: donor, position in the donor's index.
    pub reached: Vec<(usize, usize)>,
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
}

impl Draft {
    /// Adds an edit.
    pub(super) fn edit(&mut self, target: usize, action: Action) {
        self.edits.push(Edit { target, action });
    }

    /// Says something about the operation.
    pub(super) fn say(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Notes that a donor tensor is used, and names it.
    pub(super) fn uses(&mut self, donor: usize, position: usize, key: &Key) -> TensorRef {
        self.reached.push((donor, position));
        TensorRef { donor, key: key.clone() }
    }
}

/// Tensors (or modules) with the same mistake, so that a mistake is one message however many tensors it hits.
#[derive(Debug, Default)]
pub(super) struct Tally {
    found: BTreeMap<(Code, String), Found>,
}

#[derive(Debug)]
struct Found {
    help: String,
    names: Vec<(String, String)>,
}

impl Tally {
    /// Counts one more `name` with a mistake.
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

    /// Whether nothing was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// One diagnostic for each mistake, labelled at `place`.
    pub(super) fn report<T>(self, draft: &mut Draft, place: &Spanned<T>) {
        for ((code, reason), found) in self.found {
            let names = found.names.iter().map(|(name, detail)| (name.as_str(), detail.as_str()));
            let message = format!("{reason}: {}", words::names_with_details(names, found.names.len()));
            draft.say(place.label_at_use(Diagnostic::new(code, message).help(found.help), ""));
        }
    }
}

/// Reports a parameter that is not finite in the working precision of some targets; returns whether all are fine.
pub(super) fn finite(
    context: &Context<'_>,
    draft: &mut Draft,
    field: &str,
    parameter: &Spanned<f64>,
    targets: impl Iterator<Item = usize>,
) -> bool {
    for target in targets {
        let (key, info) = context.entry(target);
        if number::working(info.dtype, parameter.value).is_none() {
            let message = format!(
                "`{field}` is not finite in {}, the working precision of `{key}` ({})",
                number::precision(info.dtype),
                info.dtype,
            );
            let diagnostic = Diagnostic::new(Code::NotFinite, message)
                .help("use a number that f32 can hold, below about 3.4e38");
            draft.say(parameter.label_at_use(diagnostic, ""));
            return false;
        }
    }
    true
}

/// Counts a unit that no operation can edit in place; returns whether it was one.
pub(super) fn unusable(context: &Context<'_>, unit: &Unit, tally: &mut Tally) -> bool {
    let (key, info) = context.entry(unit.first);
    match &unit.what {
        What::Incomplete(reason) => tally.add(
            Code::IncompleteAffineSet,
            incomplete(key.stem(), reason),
            "a quantized module needs `.weight`, `.scales` and `.biases` that fit each other: repair the checkpoint, \
             or `exclude` the module",
            key.stem(),
        ),
        What::Foreign(name) => tally.add(
            Code::UnsupportedQuantization,
            format!("tensors quantized as {name} cannot be operated on"),
            "`exclude` these tensors, or use a checkpoint that is dense or has affine quantization",
            key.as_str(),
        ),
        What::Plain(Class::Unloadable) => tally.add_detail(
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
