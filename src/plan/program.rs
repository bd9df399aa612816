//! [`Program`]: the ordered actions on one tensor.

use super::action::Action;
use super::ids::StepId;
use crate::checkpoint::{Dtype, Key, TensorId, TensorInfo};

/// Everything that happens to one tensor, applied in working precision and rounded once. Planning alone makes it.
///
/// Every action has an effect, and at most the first overwrites the whole tensor; if it does, the base's bytes are never
/// read.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    target: TensorId,
    key: Key,
    dtype: Dtype,
    shape: Vec<usize>,
    member: Member,
    actions: Vec<(StepId, Action)>,
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
    /// The tensor of the base.
    #[must_use]
    pub fn target(&self) -> TensorId {
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

    /// The actions in order, each with the step that it belongs to.
    #[must_use]
    pub fn actions(&self) -> &[(StepId, Action)] {
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

    /// The program of a tensor.
    pub(super) fn new(
        target: TensorId,
        (key, info): &(Key, TensorInfo),
        member: Member,
        actions: Vec<(StepId, Action)>,
    ) -> Self {
        let (dtype, shape) = (info.dtype, info.shape.clone());
        Self { target, key: key.clone(), dtype, shape, member, actions, shared_with: None }
    }

    /// Lets a tied head have the result too.
    pub(super) fn share_with(&mut self, head: Key) {
        self.shared_with = Some(head);
    }

    /// A program by itself, for tests of what reads programs.
    #[cfg(test)]
    pub(super) fn of(dtype: Dtype, shape: &[usize], actions: Vec<Action>) -> Self {
        Self {
            target: TensorId::new(0),
            key: Key::from("x"),
            dtype,
            shape: shape.to_vec(),
            member: Member::None,
            actions: actions.into_iter().map(|action| (StepId::new(0), action)).collect(),
            shared_with: None,
        }
    }
}
