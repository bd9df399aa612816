//! `granite`: Granite 3 (<https://arxiv.org/abs/2405.04324>).
//!
//! As `llama`, with multipliers on embeddings, attention, residual contributions and logits.

use super::args::Args;
use super::decoder::{Decoder, Multipliers};
use super::rotary::{Theta, rope};
use super::sizes::{Sizes, expect_activation};
use super::{Model, ModelError};
use crate::checkpoint::ModelConfig;
use crate::nn::{Activation, AttentionSpec};
use crate::weights::WeightMap;

/// Builds the model.
pub(super) fn build(config: &ModelConfig, weights: &mut WeightMap<'_>) -> Result<Box<dyn Model>, ModelError> {
    let args = &Args::new(config);
    expect_activation(args, Activation::Silu)?;
    let sizes = Sizes::lower(args)?;
    let rope = rope(args, sizes.attention.head_dim, Theta::or(10_000.0))?;
    let bias = args.flag("attention_bias", false)?;
    let mlp = sizes.mlp(Activation::Silu, args.flag("mlp_bias", false)?);
    let scale = args.factor("attention_multiplier", 1.0)?;
    let attention = AttentionSpec { bias, output_bias: bias, scale, ..AttentionSpec::plain(sizes.attention) };
    let multipliers = Multipliers {
        embedding: narrow(args.factor("embedding_multiplier", 1.0)?),
        residual: narrow(args.factor("residual_multiplier", 1.0)?),
        logits: narrow(args.factor("logits_scaling", 1.0)?.recip()),
        logits_softcap: None,
        bounded: false,
    };

    Decoder::build(weights, sizes, &[rope], sizes.norm(), multipliers, |layer| {
        layer.pre_norm_block(Some(0), &attention, |layer| layer.mlp(mlp))
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::unnecessary_wraps,
    reason = "computed in f32, where it is given"
)]
fn narrow(factor: f64) -> Option<f32> {
    Some(factor as f32)
}
