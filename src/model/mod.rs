//! What computes: one file a family, named as its `model_type`, built strictly from a `WeightMap`.
//!
//! Inside, every family file stands in the same order: what it reads of `config.json`, its blocks, the model. What is
//! common to them is in `nn`; what is done with a model (prompts in pieces, single steps, scores) is in [`run`].
//! No family samples, tokenizes or opens a file.

mod args;
mod decoder;
mod error;
mod gemma2;
mod gemma3_text;
mod granite;
mod llama;
mod mixtral;
mod olmo2;
mod phi3;
mod qwen2;
mod qwen3;
mod qwen3_moe;
mod registry;
mod rotary;
pub mod run;
mod sizes;
mod smollm3;

pub use error::{ConfigError, ModelError};
pub use registry::build;
pub use run::{Logits, Tokens};

use crate::mlx::{Array, Result};
use crate::nn::{Batch, Cache};

/// A causal language model.
pub trait Model: Send + std::fmt::Debug {
    /// Tokens there are; ids from here on are not known to it.
    fn vocabulary(&self) -> usize;

    /// Positions it was made for, where its configuration says.
    fn context(&self) -> Option<usize>;

    /// A cache for a new sequence.
    fn cache(&self) -> Cache;

    /// Hidden states before the final norm: tokens u32 `[B, T]`, each row at the positions after those in its own
    /// cache → `[B, T, hidden]`.
    ///
    /// # Errors
    /// What MLX says.
    fn hidden(&self, tokens: &Array, batch: &mut Batch<'_>) -> Result<Array>;

    /// Hidden states `[B, T, hidden]` → logits `[B, T, vocabulary]`.
    ///
    /// # Errors
    /// What MLX says.
    fn logits(&self, hidden: &Array) -> Result<Array>;
}
