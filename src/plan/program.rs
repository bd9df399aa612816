//! [`Program`]: the ordered actions on one tensor.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::{Action, Step, number};
use crate::checkpoint::{Dtype, Key, TensorIndex};
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::SurgeryFile;

/// Everything that happens to one tensor, applied in working precision and rounded once.
///
/// If the first action is a `Replace` or `Blend`, or zeroes the whole tensor, the base's bytes are never read.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Position in the base's index.
    pub target: usize,
    /// Its key.
    pub key: Key,
    /// Its dtype: the result's too.
    pub dtype: Dtype,
    /// Its shape: the result's too.
    pub shape: Vec<usize>,
    /// What, in order, each with the position of its step in [`Plan::steps`](super::Plan::steps).
    pub actions: Vec<(usize, Action)>,
    /// For an embedding whose tie with the head is kept: the head's key, which shares the result.
    pub shared_with: Option<Key>,
}

impl Program {
    /// Bytes of its result.
    #[must_use]
    pub fn result_bytes(&self) -> u64 {
        let elements: u64 = self.shape.iter().map(|&n| n as u64).product();
        (elements * self.dtype.bitsize() as u64).div_ceil(8)
    }
}

/// The programs of all steps, and for each step which of its edits a later one overwrites.
#[derive(Debug, Default)]
pub(super) struct Regrouped {
    /// One a target, in key order; targets with no action left have none.
    pub programs: Vec<Program>,
    /// Step, the step that overwrites it, target.
    pub overwritten: Vec<(usize, usize, usize)>,
}

/// Regroups edits by target, without the ones that have no effect or are overwritten.
pub(super) fn regroup(steps: &[Step], index: &TensorIndex) -> Regrouped {
    let mut order: Vec<(usize, usize, &Action)> = steps
        .iter()
        .enumerate()
        .flat_map(|(i, step)| step.edits.iter().map(move |edit| (edit.target, i, &edit.action)))
        .collect();
    order.par_sort_unstable_by_key(|&(target, step, _)| (target, step));
    let mut regrouped = Regrouped::default();
    for edits in order.chunk_by(|a, b| a.0 == b.0) {
        let target = edits[0].0;
        let (key, info) = &index.entries()[target];
        let mut live: Vec<_> = edits.iter().filter(|(_, _, action)| has_effect(info.dtype, action)).collect();
        if let Some(last) = live.iter().rposition(|(_, _, action)| overwrites(action)) {
            let by = live[last].1;
            regrouped.overwritten.extend(live.drain(..last).map(|&(target, step, _)| (step, by, target)));
        }
        if !live.is_empty() {
            regrouped.programs.push(Program {
                target,
                key: key.clone(),
                dtype: info.dtype,
                shape: info.shape.clone(),
                actions: live.into_iter().map(|&(_, step, action)| (step, action.clone())).collect(),
                shared_with: None,
            });
        }
    }
    regrouped
}

/// Whether an action can change a bit: not a factor of 1 or an alpha of 0, as the working precision has them.
fn has_effect(dtype: Dtype, action: &Action) -> bool {
    match action {
        Action::Scale { factor } => number::working(dtype, *factor) != Some(1.0),
        Action::Add { alpha, .. } => number::working(dtype, *alpha) != Some(0.0),
        Action::Zero { .. } | Action::Replace { .. } | Action::Blend { .. } => true,
    }
}

/// Whether nothing of earlier actions remains. A whole zero is kept with what stands before it: it is cheap.
fn overwrites(action: &Action) -> bool {
    matches!(action, Action::Replace { .. } | Action::Blend { .. })
}

/// One advice for each operation of which later ones overwrite something.
pub(super) fn overwritten_advice(
    file: &SurgeryFile,
    overwritten: &[(usize, usize, usize)],
    steps: &[Step],
) -> Vec<Diagnostic> {
    /// An operation is overwritten by one or two; a file of thousands that overwrite each other was made by a program.
    const MOST_LABELS: usize = 8;
    let mut sorted = overwritten.to_vec();
    sorted.sort_unstable();
    let mut advice = Vec::new();
    for mine in sorted.chunk_by(|a, b| a.0 == b.0) {
        let step = mine[0].0;
        let (Some(operation), Some(edits)) = (file.operations.get(step), steps.get(step)) else { continue };
        let by: BTreeSet<usize> = mine.iter().map(|(_, by, _)| *by).collect();
        let all = edits.edits.len();
        let how_many = if mine.len() == all {
            "everything this operation does is".to_owned()
        } else {
            let are = if mine.len() == 1 { "is" } else { "are" };
            format!("{} of {all} edits of this operation {are}", mine.len())
        };
        let message = format!("{how_many} overwritten later and not done at all");
        let mut diagnostic = Diagnostic::new(Code::Overwritten, message)
            .help("put the operation after the one that overwrites, or remove it");
        diagnostic = operation.op.label_at_use(diagnostic, "");
        for operation in by.into_iter().take(MOST_LABELS).filter_map(|by| file.operations.get(by)) {
            diagnostic = operation.op.label_at_use(diagnostic, "overwrites it");
        }
        advice.push(diagnostic);
    }
    advice
}
