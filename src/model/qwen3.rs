//! `qwen3` (<https://arxiv.org/abs/2505.09388>).
//!
//! As `llama`, with heads of queries and keys normalized before they are rotated.

use super::args::Args;
use super::decoder::{Decoder, Multipliers};
use super::qwen2::upper_windows;
use super::rotary::{Theta, rope};
use super::sizes::{Sizes, expect_activation};
use super::{Model, ModelError};
use crate::checkpoint::ModelConfig;
use crate::nn::{Activation, AttentionSpec, HeadNorm};
use crate::weights::WeightMap;

/// Builds the model.
pub(super) fn build(config: &ModelConfig, weights: &mut WeightMap<'_>) -> Result<Box<dyn Model>, ModelError> {
    let args = &Args::new(config);
    expect_activation(args, Activation::Silu)?;
    let sizes = Sizes::lower(args)?;
    let rope = rope(args, sizes.attention.head_dim, Theta::or(10_000.0))?;
    let windows = upper_windows(args, &sizes)?;
    let bias = args.flag("attention_bias", false)?;
    let mlp = sizes.mlp(Activation::Silu, false);
    let norm = HeadNorm::Each(sizes.norm());
    let attention = AttentionSpec { bias, output_bias: bias, norm, ..AttentionSpec::plain(sizes.attention) };

    Decoder::build(weights, sizes, &[rope], sizes.norm(), Multipliers::default(), |layer| {
        let attention = AttentionSpec { window: layer.of(&windows), ..attention };
        layer.pre_norm_block(Some(0), &attention, |layer| layer.mlp(mlp))
    })
}
