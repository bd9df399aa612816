//! Plans operations, each on its own: surgery preserves keys, shapes and dtypes, so no operation depends on another.

mod add;
mod blendable;
mod interpolate;
mod prune;
mod replace;
mod scale;

use std::sync::Arc;

use rayon::prelude::*;

use super::limits;
use super::planned_operation::{Context, PlannedOperation};
use super::scope::Scope;
use super::suggest::KeyNames;
use super::unmatched;
use crate::diagnostic::{Diagnostic, Severity};
use crate::surgery::{Kind, Operation, SurgeryFile};

/// Operations that are planned between two checks whether there are enough errors.
const CHUNK: usize = 256;

/// The operations of a file, planned.
#[derive(Debug, Default)]
pub(super) struct Planned {
    /// In file order. If planning stopped because there were enough errors, they are fewer than the file's.
    pub operations: Vec<PlannedOperation>,
    /// What was found while planning them.
    pub diagnostics: Vec<Diagnostic>,
}

/// Plans every operation of a file, unless together they reach too much.
pub(super) fn plan_all(context: &Context<'_>, file: &SurgeryFile, scopes: &[Arc<Scope>]) -> Planned {
    if let Some(refusal) = limits::too_many_edits(&file.operations, scopes) {
        return Planned { diagnostics: vec![refusal], ..Planned::default() };
    }
    let names = KeyNames::new(context.index());
    let mut operations: Vec<PlannedOperation> = Vec::with_capacity(file.operations.len());
    for (chunk, scopes) in file.operations.chunks(CHUNK).zip(scopes.chunks(CHUNK)) {
        let planned = chunk
            .par_iter()
            .zip(scopes)
            .map(|(operation, scope)| plan_one(context, &names, operation, scope));
        operations.par_extend(planned);
        if limits::enough_errors(operations.iter().flat_map(|planned| &planned.diagnostics)) {
            break;
        }
    }
    let diagnostics = operations.iter_mut().flat_map(|planned| planned.diagnostics.drain(..)).collect();
    Planned { operations, diagnostics }
}

fn plan_one(
    context: &Context<'_>,
    names: &KeyNames<'_>,
    operation: &Operation,
    scope: &Scope,
) -> PlannedOperation {
    let mut planned = PlannedOperation::default();
    if scope.matched.is_empty() {
        planned.report(unmatched::operation(names, operation, scope));
    } else {
        plan_kind(context, operation, scope, &mut planned);
    }
    // No target occurs twice.
    planned.edits.sort_unstable_by_key(|edit| edit.target);
    // A plan may have millions of edits and keeps them.
    planned.edits.shrink_to_fit();
    planned.reached.shrink_to_fit();
    if !operation.sound {
        // Notes derived from placeholder values are not about the user's file.
        planned.diagnostics.retain(|found| found.severity() == Severity::Error);
    }
    planned
}

fn plan_kind(context: &Context<'_>, operation: &Operation, scope: &Scope, planned: &mut PlannedOperation) {
    match &operation.kind {
        Kind::Scale { factor } => scale::plan(context, operation, scope, factor, planned),
        Kind::Add { source, alpha } => add::plan(context, operation, scope, source, alpha, planned),
        Kind::Prune { granularity, ids } => {
            prune::plan(context, operation, scope, granularity.value, ids, planned);
        }
        Kind::Replace { source, source_key } => {
            replace::plan(context, operation, scope, source, source_key, planned);
        }
        Kind::Interpolate { source_a, source_b, ratio, method } => {
            let fields = interpolate::Fields { source_a, source_b, ratio: ratio.value, method: method.value };
            interpolate::plan(context, operation, scope, &fields, planned);
        }
    }
}
