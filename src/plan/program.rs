//! [`Program`]: the ordered actions on one tensor.

use rayon::prelude::*;

use super::scope::Facts;
use super::{Action, Step};
use crate::checkpoint::{Dtype, Key, TensorIndex};

/// Everything that happens to one tensor, applied in working precision and rounded once. Planning alone makes it.
///
/// Every action has an effect, and at most the first overwrites the whole tensor; if it does, the base's bytes are never
/// read.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    target: usize,
    key: Key,
    dtype: Dtype,
    shape: Vec<usize>,
    member: Member,
    actions: Vec<(usize, Action)>,
    shared_with: Option<Key>,
}

/// What a tensor is to the affine set that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// The set's scales.
    Scales,
    /// The set's biases.
    Biases,
    /// Its codes, or a tensor of no set.
    None,
}

impl Program {
    /// Position of the tensor in the base's index.
    #[must_use]
    pub fn target(&self) -> usize {
        self.target
    }

    /// The tensor's key.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The dtype of the tensor and of the result.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The shape of the tensor and of the result.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// What the tensor is to an affine set.
    #[must_use]
    pub fn member(&self) -> Member {
        self.member
    }

    /// The actions in order, each with the position of its step in [`Plan::steps`](super::Plan::steps).
    #[must_use]
    pub fn actions(&self) -> &[(usize, Action)] {
        &self.actions
    }

    /// For an embedding whose tie with the head is kept: the head's key, which shares the result.
    #[must_use]
    pub fn shared_with(&self) -> Option<&Key> {
        self.shared_with.as_ref()
    }

    /// Whether the base's bytes are read.
    #[must_use]
    pub fn reads_base(&self) -> bool {
        !self.actions.first().is_some_and(|(_, action)| action.overwrites())
    }

    /// Bytes of its result.
    #[must_use]
    pub fn result_bytes(&self) -> u64 {
        let elements: u64 = self.shape.iter().map(|&n| n as u64).product();
        (elements * self.dtype.bitsize() as u64).div_ceil(8)
    }

    /// Lets a tied head have the result too.
    pub(super) fn share_with(&mut self, head: Key) {
        self.shared_with = Some(head);
    }

    /// A program by itself, for tests of what reads programs.
    #[cfg(test)]
    pub(super) fn of(dtype: Dtype, shape: &[usize], actions: Vec<Action>) -> Self {
        Self {
            target: 0,
            key: Key::from("x"),
            dtype,
            shape: shape.to_vec(),
            member: Member::None,
            actions: actions.into_iter().map(|action| (0, action)).collect(),
            shared_with: None,
        }
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
pub(super) fn regroup(steps: &[Step], index: &TensorIndex, facts: &Facts<'_>) -> Regrouped {
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
        let mut live: Vec<_> = edits.iter().filter(|(_, _, action)| action.has_effect(info.dtype)).collect();
        if let Some(last) = live.iter().rposition(|(_, _, action)| action.overwrites()) {
            let by = live[last].1;
            regrouped.overwritten.extend(live.drain(..last).map(|&(target, step, _)| (step, by, target)));
        }
        if !live.is_empty() {
            regrouped.programs.push(Program {
                target,
                key: key.clone(),
                dtype: info.dtype,
                shape: info.shape.clone(),
                member: facts.member(target),
                actions: live.into_iter().map(|&(_, step, action)| (step, action.clone())).collect(),
                shared_with: None,
            });
        }
    }
    regrouped
}
