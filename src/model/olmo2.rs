//! `olmo2` (<https://arxiv.org/abs/2501.00656>).
//!
//! Norms after attention and feed-forward network instead of before; queries and keys are normalized over all heads.

use super::args::Args;
use super::decoder::{Block, Decoder, Multipliers};
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
    let bias = args.flag("attention_bias", false)?;
    let mlp = sizes.mlp(Activation::Silu, false);
    let norm = HeadNorm::Whole(sizes.norm());
    let attention = AttentionSpec { bias, output_bias: bias, norm, ..AttentionSpec::plain(sizes.attention) };

    Decoder::build(weights, sizes, &[rope], sizes.norm(), Multipliers::default(), |layer| {
        Ok(Block {
            rope: Some(0),
            attention: layer.attention(&attention)?,
            attention_norms: layer.norms(None, Some("post_attention_layernorm"))?,
            feed_forward: layer.mlp(mlp)?,
            feed_forward_norms: layer.norms(None, Some("post_feedforward_layernorm"))?,
        })
    })
}
