//! Why a checkpoint cannot be read.

use std::path::PathBuf;

/// A refusal: the file and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {reason}", path.display())]
pub struct ReadError {
    /// The file (or directory) refused.
    pub path: PathBuf,
    /// A lowercase fragment with the tensor and the numbers.
    pub reason: String,
    /// Which family of mistakes it is; the planner turns it into a code.
    pub kind: ReadErrorKind,
    /// What to do about it.
    pub help: Option<String>,
}

/// The families of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// Nothing there (or a dangling link).
    NotFound,
    /// There, but not a readable checkpoint.
    Unreadable,
    /// The index file and the shards disagree.
    BadIndex,
}

/// An oddity that does not prevent reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadWarning {
    /// A shard holds a tensor that the index file does not list.
    UnlistedTensor { path: PathBuf, key: super::Key },
    /// Bytes after the last tensor.
    TrailingBytes { path: PathBuf, bytes: u64 },
}
