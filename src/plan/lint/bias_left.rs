//! Linear biases that stay the base's while their weight is replaced.

use super::other_operations::OtherOperations;
use crate::checkpoint::{TensorId, TensorIndex};
use crate::diagnostic::{Code, Diagnostic, words};
use crate::plan::planned_operation::PlannedOperation;
use crate::surgery::{Kind, Operation};

/// A note on a `replace` that leaves linear biases which no other `replace` of the file takes.
pub(super) fn note(
    index: &TensorIndex,
    operation: &Operation,
    planned: &PlannedOperation,
    others: &OtherOperations<'_>,
) -> Option<Diagnostic> {
    let Kind::Replace { .. } = &operation.kind else { return None };
    let key = |id: TensorId| index[id].0.as_str();
    let left: Vec<&str> = planned
        .targets
        .iter()
        .filter_map(|&target| {
            let stem = key(target).strip_suffix(".weight")?;
            let bias = index.position(&format!("{stem}.bias"))?;
            (!others.replace(bias)).then(|| key(bias))
        })
        .collect();
    if left.is_empty() {
        return None;
    }
    let message = format!("the weight is replaced, its linear bias is not: {}", words::names(&left));
    let diagnostic = Diagnostic::new(Code::BiasLeft, message)
        .help("widen the pattern to replace the bias too, if it belongs to the weight");
    Some(operation.pattern.label_at_use(diagnostic, ""))
}
