//! [`Shard`]: one `.safetensors` file, its header checked, its data read by position.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Dtype, Key, ReadError};

/// What tells whether a file is still the one that was planned with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Length in bytes.
    pub len: u64,
    /// Modification time, nanoseconds since the epoch.
    pub modified: u128,
    /// Device and inode where the system has them.
    pub identity: (u64, u64),
}

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

/// An open file with a checked header.
#[derive(Debug)]
pub struct Shard {
    /// The file as it was named (a link keeps its own name).
    pub path: PathBuf,
    /// Tensors in file order (by offset).
    pub tensors: Vec<StoredTensor>,
    /// `__metadata__`, in file order.
    pub metadata: Option<Vec<(String, String)>>,
    /// Where the data begins.
    pub data_start: u64,
    /// The file as it was when its header was read.
    pub fingerprint: Fingerprint,
    file: File,
}

impl Shard {
    /// Opens a file and reads and checks its header.
    ///
    /// # Errors
    /// The first refusal, with the tensor and the numbers.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        todo!()
    }

    /// Fills `buffer` from the absolute byte `offset`, by a positioned read: usable from several threads.
    ///
    /// # Errors
    /// What the system says; a file that has shrunk is `UnexpectedEof`.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        todo!()
    }

    /// Whether the file (both the open one and what its name leads to now) is still the one whose header was read.
    ///
    /// # Errors
    /// What the system says.
    pub fn unchanged(&self) -> io::Result<bool> {
        todo!()
    }
}
