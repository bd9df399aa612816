//! What is on disk: headers and `config.json`, never weights.
//!
//! [`Weights::open`] reads the headers of a file, a directory or an index file; [`Checkpoint::open`] adds `config.json`
//! and restores the tied head. Donors are `Weights`, the base is a `Checkpoint`.
//!
//! ```text
//! path ──discover──▶ files ──Shard::open──▶ Header ──▶ TensorIndex ──sanitize──▶ the keys the loader will see
//!                 (index.json)  (parallel)                          (config.json)
//! ```
//!
//! Everything here comes from strangers: nothing is believed, nothing is read without a limit, and only regular files
//! are opened.

mod affine;
mod config;
mod discover;
mod dtype;
mod error;
mod file;
mod header;
mod index;
mod json;
mod key;
mod listing;
mod near;
mod packing;
mod quantization;
mod read_errors;
mod role;
mod sanitize;
mod shard;
mod sniff;
mod text_key;
mod weights;

#[cfg(test)]
mod testing;

pub use affine::{AffineFormat, AffineSet};
pub use config::ModelConfig;
pub use discover::INDEX_FILE;
pub use dtype::{byte_length, is_dense_float, mlx_can_load};
pub use error::{ReadError, ReadErrorKind, ReadWarning};
pub use file::open_regular;
pub use header::{Header, Refused};
pub use index::{Origin, TensorIndex, TensorInfo};
pub use key::Key;
pub use listing::Listing;
pub use near::{elsewhere, models_beside_strays, neighbour, not_above_models};
pub use packing::{Packing, UNNAMED_FLOATS, packing};
pub use quantization::{ModuleQuantization, Quantization};
pub use read_errors::ReadErrors;
pub use role::{Role, is_other_tower};
pub use safetensors::Dtype;
pub use sanitize::sanitize;
pub use shard::{Fingerprint, Shard, StoredTensor};
pub use weights::Weights;

use std::path::{Path, PathBuf};

/// A model directory: its weights and its `config.json`.
#[derive(Debug)]
pub struct Checkpoint {
    /// The directory as it was named.
    pub dir: PathBuf,
    /// `config.json`.
    #[doc(hidden)]
    pub config: ModelConfig,
    /// The files and every tensor, with the tied head restored (`Origin::Tied`).
    #[doc(hidden)]
    pub weights: Weights,
}

impl Checkpoint {
    /// Opens a model directory.
    ///
    /// # Errors
    /// Every refusal found, each naming its file.
    pub fn open(dir: &Path) -> Result<Self, ReadErrors> {
        Self::read(dir).map_err(ReadErrors::from)
    }

    fn read(dir: &Path) -> Result<Self, Vec<ReadError>> {
        let metadata =
            dir.metadata().map_err(|error| vec![ReadError::io(dir, &error).or_models_near(dir)])?;
        if !metadata.is_dir() {
            return Err(vec![not_a_directory(dir)]);
        }
        let config = ModelConfig::read(&dir.join("config.json"));
        match (config, Weights::open(dir)) {
            (Ok(config), Ok(mut weights)) => {
                weights.index = sanitize(weights.index, &config);
                Ok(Self { dir: dir.to_owned(), config, weights })
            }
            (Err(error), Ok(_)) if error.kind == ReadErrorKind::NotFound => {
                Err(vec![error.or_models_inside(dir)])
            }
            (Err(error), Ok(_)) => Err(vec![error]),
            (Ok(_), Err(errors)) => Err(errors),
            // Neither is there, or nothing in the directory can be seen: one mistake.
            (Err(config), Err(errors))
                if config.kind == ReadErrorKind::NotFound || errors.iter().any(|error| error.path == dir) =>
            {
                Err(errors)
            }
            // Leave to read is given for all files at once; anything else is wrong with each by itself.
            (Err(config), Err(errors))
                if config.kind == ReadErrorKind::Forbidden
                    && errors.iter().all(|error| error.reason == config.reason) =>
            {
                let refused = ReadError::unreadable(dir, format!("{} for all files in it", config.reason));
                Err(vec![refused.help("allow reading the directory and its files (`chmod -R u+rX`)")])
            }
            (Err(config), Err(errors)) => Err(std::iter::once(config).chain(errors).collect()),
        }
    }
}

/// A file in place of a model directory: says what it is, if that can be seen.
fn not_a_directory(path: &Path) -> ReadError {
    let error = match Shard::open(path) {
        Ok(_) => ReadError::unreadable(path, "a file of weights, not a model directory"),
        Err(error) => ReadError { reason: format!("not a model directory: {}", error.reason), ..error },
    };
    error.or_model_around(path)
}
