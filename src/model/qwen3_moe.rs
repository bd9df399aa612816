//! `qwen3_moe`: the mixtures of Qwen 3 (<https://arxiv.org/abs/2505.09388>).
//!
//! As `qwen3`, with a mixture of experts in place of most feed-forward networks.

use super::args::Args;
use super::decoder::{Decoder, Multipliers};
use super::qwen2::upper_windows;
use super::rotary::{Theta, rope};
use super::sizes::{Sizes, expect_activation, experts_taken};
use super::{Model, ModelError};
use crate::checkpoint::ModelConfig;
use crate::nn::{Activation, AttentionSpec, ExpertsShape, HeadNorm};
use crate::weights::WeightMap;

/// Builds the model.
pub(super) fn build(config: &ModelConfig, weights: &mut WeightMap<'_>) -> Result<Box<dyn Model>, ModelError> {
    let args = &Args::new(config);
    expect_activation(args, Activation::Silu)?;
    let sizes = Sizes::lower(args)?;
    let rope = rope(args, sizes.attention.head_dim, Theta::or(10_000.0))?;
    let windows = upper_windows(args, &sizes)?;
    let bias = args.flag("attention_bias", false)?;
    let norm = HeadNorm::Each(sizes.norm());
    let attention = AttentionSpec { bias, output_bias: bias, norm, ..AttentionSpec::plain(sizes.attention) };
    let mlp = sizes.mlp(Activation::Silu, false);
    let count = match args.size("num_experts")? {
        Some(count) => count,
        None => args.required_size("num_local_experts")?,
    };
    let experts = ExpertsShape {
        hidden: sizes.attention.hidden,
        inner: args.required_size("moe_intermediate_size")?,
        count,
        taken: experts_taken(args, count)?,
        normalized: args.flag("norm_topk_prob", false)?,
        names: ["gate_proj", "up_proj", "down_proj"],
    };
    let interval = args.size("decoder_sparse_step")?.unwrap_or(1);
    let dense = args.numbers("mlp_only_layers")?.unwrap_or_default();
    let mixes = |layer: usize| !dense.contains(&(layer as u64)) && (layer + 1).is_multiple_of(interval);

    Decoder::build(weights, sizes, &[rope], sizes.norm(), Multipliers::default(), |layer| {
        let attention = AttentionSpec { window: layer.of(&windows), ..attention };
        layer.pre_norm_block(Some(0), &attention, |layer| {
            if mixes(layer.number) { layer.experts("mlp", experts) } else { layer.mlp(mlp) }
        })
    })
}
