//! `llama`: Llama 2 and 3, `SmolLM2`, and `mistral` (<https://arxiv.org/abs/2307.09288>, <https://arxiv.org/abs/2310.06825>).
//!
//! Pre-norm blocks, grouped-query attention with rotary positions, `SwiGLU`. Mistral adds a sliding window.

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
    let windows = sizes.windows(args, |_| args.family().slides_everywhere)?;
    let bias = args.flag("attention_bias", false)?;
    let mlp = sizes.mlp(Activation::Silu, args.flag("mlp_bias", false)?);
    let attention = AttentionSpec { bias, output_bias: bias, ..AttentionSpec::plain(sizes.attention) };

    Decoder::build(weights, sizes, &[rope], sizes.norm(), Multipliers::default(), |layer| {
        let attention = AttentionSpec { window: layer.of(&windows), ..attention };
        layer.pre_norm_block(Some(0), &attention, |layer| layer.mlp(mlp))
    })
}
