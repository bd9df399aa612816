//! `qwen2`: Qwen 2 and 2.5 (<https://arxiv.org/abs/2407.10671>).
//!
//! As `llama`, with biases on queries, keys and values; upper layers may have a sliding window.

use super::args::Args;
use super::decoder::{Decoder, Multipliers};
use super::rotary::{Theta, rope};
use super::sizes::{Sizes, expect_activation};
use super::{ConfigError, Model, ModelError};
use crate::checkpoint::ModelConfig;
use crate::nn::{Activation, AttentionSpec, Window};
use crate::weights::WeightMap;

/// Builds the model.
pub(super) fn build(config: &ModelConfig, weights: &mut WeightMap<'_>) -> Result<Box<dyn Model>, ModelError> {
    let args = &Args::new(config);
    expect_activation(args, Activation::Silu)?;
    let sizes = Sizes::lower(args)?;
    let rope = rope(args, sizes.attention.head_dim, Theta::or(10_000.0))?;
    let windows = upper_windows(args, &sizes)?;
    let mlp = sizes.mlp(Activation::Silu, false);
    let attention = AttentionSpec { bias: true, ..AttentionSpec::plain(sizes.attention) };

    Decoder::build(weights, sizes, &[rope], sizes.norm(), Multipliers::default(), |layer| {
        let attention = AttentionSpec { window: layer.of(&windows), ..attention };
        layer.pre_norm_block(Some(0), &attention, |layer| layer.mlp(mlp))
    })
}

/// The windows of Qwen's families: of the layers from `max_window_layers` on, if they are used at all.
pub(super) fn upper_windows(args: &Args<'_>, sizes: &Sizes) -> Result<Vec<Window>, ConfigError> {
    let used = args.flag("use_sliding_window", false)?;
    let first = args.number("max_window_layers")?.unwrap_or(0.0);
    #[expect(clippy::cast_precision_loss, reason = "layers are few")]
    sizes.windows(args, |layer| used && layer as f64 >= first)
}
