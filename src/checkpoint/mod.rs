//! What is on disk: headers and `config.json`, never weights.
//!
//! [`Weights::open`] reads the headers of a file, a directory or an index file; [`Checkpoint::open`] adds `config.json`
//! and restores the tied head. Donors are `Weights`, the base is a `Checkpoint`.

mod affine;
mod config;
mod error;
mod index;
mod key;
mod role;
mod sanitize;
mod shard;

pub use affine::{AffineFormat, AffineSet, ModuleQuantization, Packing, Quantization, packing};
pub use config::ModelConfig;
pub use error::{ReadError, ReadErrorKind, ReadWarning};
pub use index::{Origin, TensorIndex, TensorInfo};
pub use key::Key;
pub use role::Role;
pub use safetensors::Dtype;
pub use shard::{Fingerprint, Shard};

use std::ops::Range;
use std::path::{Path, PathBuf};

/// The headers of a file, a directory of shards, or an index file, read and checked.
#[derive(Debug)]
pub struct Weights {
    /// What was opened, as it was named.
    pub path: PathBuf,
    /// The open files, in name order.
    pub shards: Vec<Shard>,
    /// Every tensor of every shard.
    pub index: TensorIndex,
    /// `__metadata__.format` of the first shard that has one (`mlx`, `pt`).
    pub format: Option<String>,
    /// Oddities that do not prevent reading.
    pub warnings: Vec<ReadWarning>,
}

impl Weights {
    /// Opens a `.safetensors` file, an index file or a directory, reading headers only, shards in parallel.
    ///
    /// # Errors
    /// Every refusal found, each naming file and tensor.
    pub fn open(path: &Path) -> Result<Self, Vec<ReadError>> {
        todo!()
    }

    /// Where a tensor's bytes are: a tied tensor's are those it is tied to.
    #[must_use]
    pub fn locate(&self, info: &TensorInfo) -> (&Shard, Range<u64>) {
        todo!()
    }
}

/// A model directory: its weights and its `config.json`.
#[derive(Debug)]
pub struct Checkpoint {
    /// The directory as it was named.
    pub dir: PathBuf,
    /// `config.json`.
    pub config: ModelConfig,
    /// The files and every tensor, with the tied head restored (`Origin::Tied`).
    pub weights: Weights,
}

impl Checkpoint {
    /// Opens a model directory.
    ///
    /// # Errors
    /// Every refusal found, each naming its file.
    pub fn open(dir: &Path) -> Result<Self, Vec<ReadError>> {
        todo!()
    }
}
