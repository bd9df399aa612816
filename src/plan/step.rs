//! [`Step`]: one operation of the plan, with its edits.

use std::sync::Arc;

use super::action::Edit;
use super::ids::OperationId;
use super::planned_operation::PlannedOperation;
use super::scope::Scope;
use crate::checkpoint::{Origin, TensorId, TensorIndex};
use crate::surgery::{OpName, Operation, SurgeryFile};

/// One operation, planned.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its place in the file.
    pub index: OperationId,
    /// `name:`.
    pub name: Option<String>,
    /// `scale`, `add`, …
    pub op: OpName,
    /// 1-based line.
    pub line: usize,
    /// Keys the pattern matched.
    pub matched: usize,
    /// Matched keys that are not edited.
    pub skipped: usize,
    /// Skipped keys of a restored head, which no file has.
    pub restored: usize,
    /// One per tensor, in key order.
    pub edits: Vec<Edit>,
}

/// The steps of operations that were planned without mistakes, in file order.
pub(super) fn steps(
    file: &SurgeryFile,
    index: &TensorIndex,
    scopes: &[Arc<Scope>],
    planned: Vec<PlannedOperation>,
) -> Vec<Step> {
    let operations = file.operations.iter().zip(scopes).zip(planned);
    operations.map(|((operation, scope), planned)| Step::new(index, operation, scope, planned)).collect()
}

impl Step {
    fn new(index: &TensorIndex, operation: &Operation, scope: &Scope, planned: PlannedOperation) -> Self {
        let matched = scope.matched.len();
        let skipped = planned.acted.map_or(0, |acted| matched.saturating_sub(acted));
        let is_restored = |id: &&TensorId| matches!(index[**id].1.origin, Origin::Tied(_));
        let restored = match skipped {
            0 => 0,
            _ => scope.matched.iter().filter(is_restored).count().min(skipped),
        };
        Self {
            index: OperationId::new(operation.index),
            name: operation.name.clone(),
            op: operation.op.value,
            line: operation.line,
            matched,
            skipped,
            restored,
            edits: planned.edits,
        }
    }
}
