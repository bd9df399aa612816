//! [`StoredTensor`]: one tensor of a header.

use std::ops::Range;

use super::{Dtype, Key};

/// One tensor as the header has it; the range is absolute in the file.
#[derive(Debug, Clone)]
pub struct StoredTensor {
    /// Name.
    pub key: Key,
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions.
    pub shape: Vec<usize>,
    /// Absolute byte offsets.
    pub range: Range<u64>,
}
