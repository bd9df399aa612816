//! Lints: what is planned in, warnings and notes out. They change nothing of the plan.

mod bias_left;
mod dead_pattern;
pub(super) mod donors;
mod norm_offset;
mod other_operations;
pub(super) mod overwritten;
mod pruned_heads;
pub(super) mod ties;
pub(super) mod whole_model;

use std::sync::Arc;

use rayon::prelude::*;

use super::planned_operation::PlannedOperation;
use super::scope::Scope;
use super::suggest::KeyNames;
use crate::checkpoint::Checkpoint;
use crate::diagnostic::Diagnostic;
use crate::surgery::{Operation, SurgeryFile};
use other_operations::OtherOperations;

/// Looks at each operation that was planned, in file order. Operations with mistakes are left out: notes derived from
/// placeholder values are not about the user's file.
pub(super) fn operations(
    file: &SurgeryFile,
    base: &Checkpoint,
    scopes: &[Arc<Scope>],
    planned: &[PlannedOperation],
) -> Vec<Diagnostic> {
    let index = &base.weights.index;
    let names = KeyNames::new(index);
    let others = OtherOperations::gather(&file.operations, scopes, index.entries().len());
    let operations = file.operations.par_iter().zip(scopes).zip(planned);
    let lint = |((operation, scope), planned): ((&Operation, &Arc<Scope>), &PlannedOperation)| {
        let mut notes = Vec::new();
        if operation.sound && !scope.matched.is_empty() {
            notes.extend(norm_offset::note(base, operation, planned));
            notes.extend(bias_left::note(index, operation, planned, &others));
            notes.extend(pruned_heads::notes(index, operation, planned, &others));
            notes.extend(dead_pattern::notes(file, &names, operation, scope));
        }
        notes
    };
    operations.flat_map_iter(lint).collect()
}
