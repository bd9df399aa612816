//! `mixtral` (<https://arxiv.org/abs/2401.04088>).
//!
//! As `mistral`, with a mixture of experts in place of the feed-forward network.

use super::args::Args;
use super::decoder::{Decoder, Multipliers};
use super::rotary::{Theta, rope};
use super::sizes::{Sizes, expect_activation, experts_taken};
use super::{Model, ModelError};
use crate::checkpoint::ModelConfig;
use crate::nn::{Activation, AttentionSpec, ExpertsShape};
use crate::weights::WeightMap;

/// Builds the model.
pub(super) fn build(config: &ModelConfig, weights: &mut WeightMap<'_>) -> Result<Box<dyn Model>, ModelError> {
    let args = &Args::new(config);
    expect_activation(args, Activation::Silu)?;
    let sizes = Sizes::lower(args)?;
    let rope = rope(args, sizes.attention.head_dim, Theta::or(1_000_000.0))?;
    let windows = sizes.windows(args, |_| args.family().slides_everywhere)?;
    let attention = AttentionSpec::plain(sizes.attention);
    let count = args.required_size("num_local_experts")?;
    let experts = ExpertsShape {
        hidden: sizes.attention.hidden,
        inner: sizes.intermediate,
        count,
        taken: experts_taken(args, count)?,
        normalized: true,
        names: ["w1", "w3", "w2"],
    };

    Decoder::build(weights, sizes, &[rope], sizes.norm(), Multipliers::default(), |layer| {
        let attention = AttentionSpec { window: layer.of(&windows), ..attention };
        layer.pre_norm_block(Some(0), &attention, |layer| layer.experts("block_sparse_moe", experts))
    })
}
