//! The models: one file per family, named after its `model_type`. Each is built from a `WeightMap` that must have exactly
//! the tensors it needs.
//!
//! Every family file has the same order: the values it reads from `config.json`, its blocks, the model. Shared parts are in
//! `nn`; running a model (prompts in chunks, single steps, scores) is in [`run`]. No family samples, tokenizes or opens a
//! file, and the table of families is `checkpoint::Family`.

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

pub(crate) use error::{ConfigError, ModelError};
pub(crate) use registry::build;
pub(crate) use run::{Logits, Tokens};

use crate::mlx::{Array, Result};
use crate::nn::{Batch, Cache};

/// A causal language model.
pub trait Model: Send + std::fmt::Debug {
    /// Number of tokens. Ids from this number on are unknown to the model.
    fn vocabulary(&self) -> usize;

    /// Context length in positions, if the configuration gives it.
    fn context(&self) -> Option<usize>;

    /// A cache for a new sequence.
    fn cache(&self) -> Cache;

    /// Hidden states before the final norm: tokens u32 `[B, T]`, each row at the positions after those in its own
    /// cache → `[B, T, hidden]`.
    ///
    /// # Errors
    /// A failure of MLX.
    fn hidden(&self, tokens: &Array, batch: &mut Batch<'_>) -> Result<Array>;

    /// Hidden states `[B, T, hidden]` → logits `[B, T, vocabulary]`.
    ///
    /// # Errors
    /// A failure of MLX.
    fn logits(&self, hidden: &Array) -> Result<Array>;
}
