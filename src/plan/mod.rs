//! What will be done: every tensor that will change and the exact program that changes it. No globs, no options, no
//! doubts: holding a [`Plan`] is the proof that its file is right.

mod add;
mod alternative;
mod blendable;
mod check;
pub(crate) mod cost;
mod digest;
mod donor;
mod draft;
pub mod explain;
pub(crate) mod fold;
mod interpolate;
pub mod json;
mod limit;
mod near;
mod norm;
mod number;
mod others;
mod program;
mod prune;
mod replace;
mod rewrite;
mod say;
mod scale;
mod scope;
mod summary;
mod subject;
mod tie;

pub use check::{
    base_refusals, check, check_without_donors, donor_refusals, no_donor_match_help, no_match_help, refuse,
};
pub use donor::{Donor, config_beside};
pub use program::Program;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::checkpoint::{Checkpoint, Key, Origin, Shard, TensorIndex, TensorInfo};
use crate::diagnostic::{Code, Diagnostic, Severity};
pub use crate::surgery::Method;
use crate::surgery::{Kind, Operation, SurgeryFile, WRITTEN};
use donor::Donors;
use draft::{Context, Draft};
use near::Vocabulary;
use others::Others;
use scope::{Facts, Scope};

/// So many operations are drafted between two looks at what is wrong.
const AT_ONCE: usize = 256;

/// A validated plan. It owns its open files, base and donors, until it is executed.
#[derive(Debug)]
pub struct Plan {
    base: Checkpoint,
    donors: Vec<Donor>,
    steps: Vec<Step>,
    programs: Vec<Program>,
    diagnostics: Vec<Diagnostic>,
    summary: Summary,
    digest: Option<String>,
    /// Heads whose tie with the embedding is broken: positions in the base's index.
    untied: Vec<usize>,
    /// The surgery file as it was named; `None` for the plan of no file.
    file: Option<PathBuf>,
}

/// One operation, planned.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its place in the file, from 0.
    pub index: usize,
    /// `name:`.
    pub name: Option<String>,
    /// `scale`, `add`, …
    pub op: &'static str,
    /// 1-based line.
    pub line: usize,
    /// Keys the pattern matched.
    pub matched: usize,
    /// Matched keys left alone.
    pub skipped: usize,
    /// Matched keys of a restored head, which no file has.
    pub restored: usize,
    /// One per tensor, in key order.
    pub edits: Vec<Edit>,
}

/// One tensor and what one operation does to it.
#[derive(Debug, Clone)]
pub struct Edit {
    /// Position in the base's index.
    pub target: usize,
    /// What.
    pub action: Action,
}

/// What the executor can do. Quantization ends above this line: a scaled affine set is two `Scale`s.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// x · factor.
    Scale {
        /// Finite in working precision.
        factor: f64,
    },
    /// base + (alpha · donor).
    Add {
        /// Equal shape, dense float.
        donor: TensorRef,
        /// Finite in working precision.
        alpha: f64,
    },
    /// Zero a region.
    Zero {
        /// Which.
        region: Region,
    },
    /// The donor's bits.
    Replace {
        /// Equal shape and dtype.
        donor: TensorRef,
    },
    /// blend(a, b), whatever the base holds.
    Blend {
        /// First donor tensor.
        a: TensorRef,
        /// Second donor tensor.
        b: TensorRef,
        /// b's weight, 0 to 1.
        ratio: f64,
        /// How.
        method: Method,
    },
}

/// Which elements of a tensor, in its own units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Region {
    /// All.
    Whole,
    /// Sorted, disjoint, non-empty ranges of rows (axis 0) or columns (axis 1).
    Slices {
        /// 0 or 1.
        axis: usize,
        /// `[start, end)`.
        ranges: Vec<Range<usize>>,
    },
}

/// A tensor of a donor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorRef {
    /// Position in [`Plan::donors`].
    pub donor: usize,
    /// The key that is stored there (a missing head already resolved to the embedding).
    pub key: Key,
}

/// What the plan costs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations in the file.
    pub operations: usize,
    /// Stored tensors (and heads of broken ties) left to edit.
    pub tensors_edited: usize,
    /// Bytes read from the base's edited tensors.
    pub base_bytes: u64,
    /// Bytes read from donors.
    pub donor_bytes: u64,
    /// Bytes of the results.
    pub result_bytes: u64,
    /// At most so much memory beyond plain loading at a time.
    pub peak_extra_bytes: u64,
}

/// No plan: everything that is wrong (and what else was found), in file order.
#[derive(Debug)]
pub struct Refusal {
    /// At least one error among them.
    pub diagnostics: Vec<Diagnostic>,
}

/// Plans a surgery file against a checkpoint. Takes the checkpoint, because the plan owns its open files.
///
/// # Errors
/// Every mistake found in file, checkpoint and donors, in file order.
pub fn plan(file: &SurgeryFile, base: Checkpoint) -> Result<Plan, Refusal> {
    let (scopes, mut donors) =
        rayon::join(|| scope::gather(&file.operations, &base.weights.index), || Donors::open(file));
    let mut diagnostics = file.diagnostics.clone();
    diagnostics.extend(base.weights.warnings.iter().map(donor::oddity));
    diagnostics.append(&mut donors.diagnostics);
    let mut drafts = match limit::too_many(&file.operations, &scopes) {
        Some(refusal) => {
            diagnostics.push(refusal);
            Vec::new()
        }
        None => draft_all(file, &base, &scopes, &donors),
    };
    for draft in &mut drafts {
        diagnostics.append(&mut draft.diagnostics);
    }
    diagnostics.extend(near::fragments(file, &base.weights.index));
    diagnostics.extend(donors.formats(base.weights.format.as_deref()));
    if diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error) {
        finish(&mut diagnostics);
        return Err(Refusal { diagnostics });
    }
    diagnostics.extend(donors.unreached(&file.operations, drafts.iter().flat_map(|draft| &draft.reached)));
    let steps: Vec<Step> = file
        .operations
        .iter()
        .zip(&scopes)
        .zip(drafts)
        .map(|planned| Step::new(&base.weights.index, planned))
        .collect();
    let program::Regrouped { mut programs, overwritten } = program::regroup(&steps, &base.weights.index);
    diagnostics.extend(program::overwritten_advice(file, &overwritten, &steps));
    let untied = tie::settle(file, &base, &steps, &mut programs, &mut diagnostics);
    finish(&mut diagnostics);
    let donors = donors.list;
    let summary = Summary::new(steps.len(), &programs, &donors);
    let digest = digest::digest(&base.weights, &donors, &programs);
    let file = Some(file.source.path.clone());
    Ok(Plan { base, donors, steps, programs, diagnostics, summary, digest, untied, file })
}

/// Plans every operation on its own: surgery preserves keys, shapes and dtypes, so none depends on another. Stops where
/// enough is wrong: the drafts are then fewer than the operations.
fn draft_all(file: &SurgeryFile, base: &Checkpoint, scopes: &[Arc<Scope>], donors: &Donors) -> Vec<Draft> {
    let facts = Facts::gather(base, scopes);
    let vocabulary = Vocabulary::new(&base.weights.index);
    let others = Others::gather(&file.operations, scopes, base.weights.index.entries().len());
    let context = Context { file, base, others: &others, facts: &facts, donors, vocabulary: &vocabulary };
    let draft = |(operation, scope): (&Operation, &Arc<Scope>)| {
        let mut draft = Draft::default();
        if scope.matched.is_empty() {
            near::no_match(&context, operation, scope, &mut draft);
        } else {
            draft_one(&context, operation, scope, &mut draft);
            alternative::remark(&context, operation, scope, &mut draft);
        }
        draft.edits.sort_by_key(|edit| edit.target);
        if !operation.sound {
            // What is remarked of a stand-in is no remark on the file.
            draft.diagnostics.retain(|found| found.severity() == Severity::Error);
        }
        draft
    };
    let mut drafts: Vec<Draft> = Vec::with_capacity(file.operations.len());
    for (operations, scopes) in file.operations.chunks(AT_ONCE).zip(scopes.chunks(AT_ONCE)) {
        drafts.par_extend(operations.par_iter().zip(scopes).map(draft));
        if limit::enough(drafts.iter().flat_map(|draft| &draft.diagnostics)) {
            break;
        }
    }
    drafts
}

fn draft_one(context: &Context<'_>, operation: &Operation, scope: &Scope, draft: &mut Draft) {
    match &operation.kind {
        Kind::Scale { factor } => scale::plan(context, operation, scope, factor, draft),
        Kind::Add { source, alpha } => add::plan(context, operation, scope, source, alpha, draft),
        Kind::Prune { granularity, ids } => {
            prune::plan(context, operation, scope, granularity.value, ids, draft);
        }
        Kind::Replace { source, source_key } => {
            replace::plan(context, operation, scope, source, source_key, draft);
        }
        Kind::Interpolate { source_a, source_b, ratio, method } => {
            let fields = interpolate::Fields { source_a, source_b, ratio: ratio.value, method: method.value };
            interpolate::plan(context, operation, scope, &fields, draft);
        }
    }
}

/// File order: by the first place in the YAML; what has none (the model's own) comes first. A mistake that is written once
/// and used in several places is one. And not too many.
fn finish(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span.start));
    let mut first: HashMap<(Code, String, usize), usize> = HashMap::new();
    let mut kept: Vec<Diagnostic> = Vec::with_capacity(diagnostics.len());
    for diagnostic in diagnostics.drain(..) {
        let written = match diagnostic.labels.as_slice() {
            [_, written] if written.message == WRITTEN => written.span.start,
            _ => {
                kept.push(diagnostic);
                continue;
            }
        };
        match first.entry((diagnostic.code, diagnostic.message.clone(), written)) {
            Entry::Occupied(known) => {
                let labels = &mut kept[*known.get()].labels;
                if labels.len() < MOST_USES {
                    labels.extend(diagnostic.labels.into_iter().take(1));
                }
            }
            Entry::Vacant(vacant) => {
                vacant.insert(kept.len());
                kept.push(diagnostic);
            }
        }
    }
    *diagnostics = kept;
    limit::shorten(diagnostics);
}

/// A mistake that is used in more places is labelled at the first of them.
const MOST_USES: usize = 8;

impl Step {
    fn new(index: &TensorIndex, ((operation, scope), draft): ((&Operation, &Arc<Scope>), Draft)) -> Self {
        let matched = scope.matched.len();
        let skipped = match operation.kind {
            Kind::Prune { .. } => matched.saturating_sub(draft.acted),
            _ => 0,
        };
        let is_restored = |position: &&usize| matches!(index.entries()[**position].1.origin, Origin::Tied(_));
        let restored = match skipped {
            0 => 0,
            _ => scope.matched.iter().filter(is_restored).count().min(skipped),
        };
        Self {
            index: operation.index,
            name: operation.name.clone(),
            op: operation.op.value,
            line: operation.line,
            matched,
            skipped,
            restored,
            edits: draft.edits,
        }
    }
}

impl Plan {
    /// The plan of no surgery at all: the same path as `operations: []`.
    #[must_use]
    pub fn identity(base: Checkpoint) -> Self {
        let diagnostics = base.weights.warnings.iter().map(donor::oddity).collect();
        Self {
            base,
            donors: Vec::new(),
            steps: Vec::new(),
            programs: Vec::new(),
            diagnostics,
            summary: Summary::default(),
            digest: None,
            untied: Vec::new(),
            file: None,
        }
    }

    /// The surgery file as it was named; `None` for the plan of no file.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The heads whose tie with the embedding is broken, as positions in the base's index: one for a dense head, three
    /// for an affine set, none when the tie is kept. Whoever writes a checkpoint writes them, edited or not.
    #[must_use]
    pub fn untied(&self) -> &[usize] {
        &self.untied
    }

    /// The base checkpoint.
    #[must_use]
    pub fn base(&self) -> &Checkpoint {
        &self.base
    }

    /// Each distinct donor, opened once.
    #[must_use]
    pub fn donors(&self) -> &[Donor] {
        &self.donors
    }

    /// The operations in file order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// One program per edited tensor, in key order; no-effect and overwritten actions are gone.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// Warnings and advice, in file order.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// What it costs.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// `sha256:…`, or `None` when nothing is left to do.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Where a donor tensor's bytes are.
    ///
    /// # Panics
    /// If the tensor is not one of this plan's.
    #[must_use]
    pub fn donor_tensor(&self, tensor: &TensorRef) -> (&Shard, &TensorInfo, Range<u64>) {
        let weights = &self.donors[tensor.donor].weights;
        let info =
            weights.index.get(tensor.key.as_str()).expect("a plan refers to tensors that its donors have");
        let (shard, range) = weights.locate(info);
        (shard, info, range)
    }

    /// Where the bytes that a program begins with are (a head of a broken tie begins with the embedding's).
    ///
    /// # Panics
    /// If the program is not one of this plan's.
    #[must_use]
    pub fn base_tensor(&self, program: &Program) -> (&Shard, Range<u64>) {
        self.base.weights.locate(&self.base.weights.index.entries()[program.target].1)
    }
}
