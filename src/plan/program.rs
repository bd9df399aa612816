//! [`Program`]: the ordered actions on one tensor.

use super::Action;
use crate::checkpoint::{Dtype, Key};

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
