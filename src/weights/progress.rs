//! [`Progress`]: how far loading is.

/// How far loading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of weights read, computed or converted so far.
    pub done: u64,
    /// Bytes of all weights.
    pub total: u64,
    /// During surgery: the number of the tensor being computed, from 1, and the number of edited tensors.
    pub operating: Option<(usize, usize)>,
}
