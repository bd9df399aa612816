//! Regroups the edits of all steps into one program for each tensor, without the dead ones.

use rayon::prelude::*;

use super::action::Action;
use super::ids::StepId;
use super::program::Program;
use super::scope::Facts;
use super::step::Step;
use crate::checkpoint::{TensorId, TensorIndex};

/// An edit that never happens, because a later step overwrites the tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Overwritten {
    /// The step whose edit it is.
    pub step: StepId,
    /// The step that overwrites it.
    pub by: StepId,
}

/// One program for each target, in key order, and the edits that later ones overwrite. An edit that has no effect has no
/// part in any program; a target without edits has no program.
pub(super) fn regroup(
    steps: &[Step],
    index: &TensorIndex,
    facts: &Facts<'_>,
) -> (Vec<Program>, Vec<Overwritten>) {
    let mut order: Vec<(TensorId, StepId, &Action)> = steps
        .iter()
        .enumerate()
        .flat_map(|(i, step)| step.edits.iter().map(move |edit| (edit.target, StepId::new(i), &edit.action)))
        .collect();
    order.par_sort_unstable_by_key(|&(target, step, _)| (target, step));
    let (mut programs, mut overwritten) = (Vec::new(), Vec::new());
    for edits in order.chunk_by(|a, b| a.0 == b.0) {
        let target = edits[0].0;
        let entry = &index[target];
        let mut live: Vec<_> =
            edits.iter().filter(|(_, _, action)| action.has_effect(entry.1.dtype)).collect();
        if let Some(last) = live.iter().rposition(|(_, _, action)| action.overwrites()) {
            let by = live[last].1;
            overwritten.extend(live.drain(..last).map(|&(_, step, _)| Overwritten { step, by }));
        }
        if !live.is_empty() {
            let actions = live.into_iter().map(|&(_, step, action)| (step, action.clone())).collect();
            programs.push(Program::new(target, entry, facts.member(target), actions));
        }
    }
    (programs, overwritten)
}
