//! [`TensorIndex`]: every tensor of a checkpoint, in key order.

use std::ops::Range;

use super::{Dtype, Key};

/// Where a tensor's bytes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A byte range of a shard (absolute in the file).
    Stored {
        /// Position in `Weights::shards`.
        shard: usize,
        /// Absolute byte offsets in that file.
        range: Range<u64>,
    },
    /// The same bytes as another tensor of the index (a restored `lm_head`).
    Tied(Key),
}

/// What a header says of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// Where its bytes are.
    pub origin: Origin,
}

/// Every tensor, ordered by key (bytewise).
#[derive(Debug, Clone, Default)]
pub struct TensorIndex {
    entries: Vec<(Key, TensorInfo)>,
}

impl TensorIndex {
    /// Sorts the entries by key. Keys must be distinct.
    #[must_use]
    pub fn new(entries: Vec<(Key, TensorInfo)>) -> Self {
        todo!()
    }

    /// The tensor of that name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&TensorInfo> {
        todo!()
    }

    /// Its position in key order.
    #[must_use]
    pub fn position(&self, key: &str) -> Option<usize> {
        todo!()
    }

    /// All entries in key order; positions are those of [`position`](Self::position).
    #[must_use]
    pub fn entries(&self) -> &[(Key, TensorInfo)] {
        &self.entries
    }
}
