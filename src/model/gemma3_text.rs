//! `gemma3_text`: the text model of Gemma 3 (<https://arxiv.org/abs/2503.19786>).
//!
//! As `gemma2` without soft caps, with normalized query and key heads. Five layers with a sliding window and their own
//! rotary base alternate with one layer without.

use super::args::Args;
use super::decoder::{Decoder, Multipliers};
use super::gemma2::{attention, block, multipliers};
use super::rotary::{Theta, rope_of};
use super::sizes::{Sizes, expect_activation};
use super::{ConfigError, Model, ModelError};
use crate::checkpoint::ModelConfig;
use crate::nn::{Activation, AttentionSpec, HeadNorm};
use crate::weights::WeightMap;

/// Builds the model.
pub(super) fn build(config: &ModelConfig, weights: &mut WeightMap<'_>) -> Result<Box<dyn Model>, ModelError> {
    let args = &Args::new(config);
    expect_activation(args, Activation::GeluTanh)?;
    if args.flag("use_bidirectional_attention", false)? {
        return Err(ConfigError::Bidirectional.into());
    }
    let sizes = Sizes::lower(args)?;
    let width = sizes.attention.head_dim;
    let global = rope_of(args, "full_attention", width, Theta::or(1_000_000.0), true)?;
    let local = Theta { name: "rope_local_base_freq", default: 10_000.0 };
    let local = rope_of(args, "sliding_attention", width, local, false)?;
    let interval = match args.size("sliding_window_pattern")? {
        Some(interval) => interval,
        None => args.size("_sliding_window_pattern")?.unwrap_or(6),
    };
    let windows = sizes.windows(args, |layer| !(layer + 1).is_multiple_of(interval))?;
    let attention = AttentionSpec { norm: HeadNorm::Each(sizes.norm()), ..attention(args, &sizes, None)? };
    let multipliers = Multipliers { bounded: true, ..multipliers(args, &sizes, None)? };
    let mlp = sizes.mlp(Activation::GeluTanh, false);

    Decoder::build(weights, sizes, &[global, local], sizes.norm(), multipliers, |layer| {
        let window = layer.of(&windows);
        block(layer, usize::from(window.is_some()), &AttentionSpec { window, ..attention }, mlp)
    })
}
