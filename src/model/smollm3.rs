//! `smollm3`.
//!
//! As `llama`, with some layers that do not rotate (<https://arxiv.org/abs/2501.18795>).

use super::args::Args;
use super::decoder::{Decoder, Multipliers};
use super::rotary::{Theta, rope};
use super::sizes::{Sizes, expect_activation};
use super::{ConfigError, Model, ModelError};
use crate::checkpoint::ModelConfig;
use crate::nn::{Activation, AttentionSpec};
use crate::weights::WeightMap;

/// Builds the model.
pub(super) fn build(config: &ModelConfig, weights: &mut WeightMap<'_>) -> Result<Box<dyn Model>, ModelError> {
    let args = &Args::new(config);
    expect_activation(args, Activation::Silu)?;
    let sizes = Sizes::lower(args)?;
    let rope = rope(args, sizes.attention.head_dim, Theta::or(2_000_000.0))?;
    let rotates = rotates(args, &sizes)?;
    let slides = args.flag("use_sliding_window", false)?;
    let windows = sizes.windows(args, |layer| slides && rotates.get(layer) == Some(&false))?;
    let bias = args.flag("attention_bias", false)?;
    let mlp = sizes.mlp(Activation::Silu, args.flag("mlp_bias", false)?);
    let attention = AttentionSpec { bias, output_bias: bias, ..AttentionSpec::plain(sizes.attention) };

    Decoder::build(weights, sizes, &[rope], sizes.norm(), Multipliers::default(), |layer| {
        let attention = AttentionSpec { window: layer.of(&windows), ..attention };
        let rope = layer.of(&rotates).then_some(0);
        layer.pre_norm_block(rope, &attention, |layer| layer.mlp(mlp))
    })
}

/// Whether each layer rotates: according to `no_rope_layers` (1 is yes), else all but every `no_rope_layer_interval`th.
fn rotates(args: &Args<'_>, sizes: &Sizes) -> Result<Vec<bool>, ConfigError> {
    let interval = args.size("no_rope_layer_interval")?.unwrap_or(4);
    match args.numbers("no_rope_layers")? {
        None => Ok((1..=sizes.layers).map(|nth| !nth.is_multiple_of(interval)).collect()),
        Some(list) if list.len() >= sizes.layers => Ok(list.iter().map(|&rotates| rotates != 0).collect()),
        Some(list) => Err(ConfigError::Length {
            name: "no_rope_layers".to_owned(),
            found: list.len(),
            needed: sizes.layers,
            of: "layers",
        }),
    }
}
