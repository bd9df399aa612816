//! Weights in memory: [`WeightMap`], a checkpoint's tensors as MLX arrays, with a plan applied and in the dtype that the
//! [`Policy`] decides.
//!
//! ```text
//! files ──lazy──▶ WeightMap ──operate(plan)──▶ WeightMap ──a model takes tensors: cast, dequantize, read──▶ arrays
//! ```
//!
//! A tensor that the plan leaves alone is read when the model takes it; the executor computes one that the plan edits. A
//! map is built whole or not at all. Nothing here knows of families, and nothing here prints.

mod error;
mod facts;
mod map;
mod matrix;
mod memory;
mod operate;
mod pages;
mod precision;
mod progress;
mod shared;
mod take;
mod text;

pub(crate) use error::{Disagreement, WeightsError};
pub(crate) use facts::CheckpointFacts;
pub(crate) use map::WeightMap;
pub(crate) use matrix::Matrix;
pub(crate) use memory::check_limit;
pub(crate) use memory::{LimitError, peak_memory, total_memory};
pub(crate) use precision::Policy;
pub use precision::Precision;
pub use progress::Progress;
pub(crate) use shared::SharedWeights;
