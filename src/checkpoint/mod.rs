//! Checkpoints on disk: headers and `config.json`, never weights.
//!
//! [`Weights::open`] reads the headers of a file, a directory or an index file; [`Checkpoint::open`] adds `config.json`
//! and restores the tied head. Donors are `Weights`, the base is a `Checkpoint`.
//!
//! ```text
//! path ──discover──▶ files ──Shard::open──▶ Header ──▶ TensorIndex ──sanitize──▶ the keys the loader will see
//!                 (index.json)  (parallel)                          (config.json)
//! ```
//!
//! Input is not trusted: everything is checked, nothing is read without a limit, and only regular files are opened.

mod affine;
mod config;
mod discover;
mod dtype;
mod error;
mod family;
mod file;
mod file_names;
mod header;
mod index;
mod json;
mod key;
mod model_dir;
mod not_a_model;
mod packing;
mod quantization;
mod quoted;
mod read_errors;
mod role;
mod sanitize;
mod shard;
mod shard_index;
mod sniff;
mod stored_tensor;
mod suggest_path;
mod text_config;
mod text_model_names;
mod weights;

#[cfg(test)]
mod testing;

pub(crate) use affine::AffineSet;
pub(crate) use config::ModelConfig;
pub use dtype::byte_length;
pub(crate) use dtype::{is_dense_float, mlx_can_load};
pub(crate) use error::ReadWarning;
pub use error::{ReadError, ReadErrorKind};
pub(crate) use family::{Architecture, Family, NormOffset};
pub(crate) use file::open_regular;
pub(crate) use file_names::INDEX_FILE;
pub use header::Header;
pub(crate) use index::{Origin, TensorId, TensorIndex, TensorInfo};
pub use key::Key;
pub use model_dir::Checkpoint;
pub(crate) use not_a_model::not_above_models;
pub(crate) use packing::{Packing, UNNAMED_FLOATS, packing};
pub(crate) use quantization::{AffineFormat, Quantization};
pub use read_errors::ReadErrors;
pub(crate) use role::{Role, is_other_tower};
pub use safetensors::Dtype;
pub(crate) use sanitize::sanitize;
pub(crate) use shard::Fingerprint;
pub use shard::Shard;
pub use shard_index::Listing;
pub(crate) use stored_tensor::StoredTensor;
pub(crate) use suggest_path::{elsewhere, models_beside_strays, neighbour};
pub(crate) use text_config::TextConfig;
pub use weights::Weights;
