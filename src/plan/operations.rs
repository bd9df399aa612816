//! Planning the operations, each on its own: surgery preserves keys, shapes and dtypes, so none depends on another.

use std::sync::Arc;

use rayon::prelude::*;

use super::donor::Donors;
use super::draft::{Context, Draft};
use super::near::{self, Vocabulary};
use super::others::Others;
use super::scope::{Facts, Scope};
use super::types::Step;
use super::{add, alternative, interpolate, limit, prune, replace, scale};
use crate::checkpoint::{Checkpoint, Origin, TensorIndex};
use crate::diagnostic::Severity;
use crate::surgery::{Kind, Operation, SurgeryFile};

/// So many operations are drafted between two looks at what is wrong.
const AT_ONCE: usize = 256;

/// Plans every operation. Stops where
/// enough is wrong: the drafts are then fewer than the operations.
pub(super) fn draft_all(
    file: &SurgeryFile,
    base: &Checkpoint,
    scopes: &[Arc<Scope>],
    facts: &Facts<'_>,
    donors: &Donors,
) -> Vec<Draft> {
    let vocabulary = Vocabulary::new(&base.weights.index);
    let others = Others::gather(&file.operations, scopes, base.weights.index.entries().len());
    let context = Context { file, base, others: &others, facts, donors, vocabulary: &vocabulary };
    let draft = |(operation, scope): (&Operation, &Arc<Scope>)| {
        let mut draft = Draft::default();
        if scope.matched.is_empty() {
            near::no_match(&context, operation, scope, &mut draft);
        } else {
            draft_one(&context, operation, scope, &mut draft);
            alternative::remark(&context, operation, scope, &mut draft);
        }
        // No target is there twice.
        draft.edits.sort_unstable_by_key(|edit| edit.target);
        // A plan may have millions, and is kept.
        draft.edits.shrink_to_fit();
        draft.reached.shrink_to_fit();
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

impl Step {
    pub(super) fn new(
        index: &TensorIndex,
        ((operation, scope), draft): ((&Operation, &Arc<Scope>), Draft),
    ) -> Self {
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
