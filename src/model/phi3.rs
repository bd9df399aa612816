//! `phi3`: Phi 3, 3.5 and 4 (<https://arxiv.org/abs/2404.14219>).
//!
//! As `llama`, with `qkv_proj` and `gate_up_proj` stored as one; heads may be rotated in part.

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
    let mlp = sizes.mlp(Activation::Silu, false);
    let attention =
        AttentionSpec { fused: args.family().has_fused_projections, ..AttentionSpec::plain(sizes.attention) };

    Decoder::build(weights, sizes, &[rope], sizes.norm(), Multipliers::default(), |layer| {
        let attention = AttentionSpec { window: layer.of(&windows), ..attention };
        layer.pre_norm_block(Some(0), &attention, |layer| layer.fused_mlp(mlp))
    })
}
