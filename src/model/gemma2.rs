//! `gemma2` (<https://arxiv.org/abs/2408.00118>).
//!
//! Norms before and after attention and feed-forward network, whose weights are stored minus 1; soft-capped attention and
//! logits; every other layer has a sliding window.

use half::bf16;

use super::args::{Args, positive};
use super::decoder::{Block, Decoder, Layer, Multipliers};
use super::rotary::{Theta, rope};
use super::sizes::{Sizes, expect_activation};
use super::{ConfigError, Model, ModelError};
use crate::checkpoint::ModelConfig;
use crate::nn::{Activation, AttentionSpec, MlpShape};
use crate::weights::{WeightMap, WeightsError};

/// Builds the model.
pub(super) fn build(config: &ModelConfig, weights: &mut WeightMap<'_>) -> Result<Box<dyn Model>, ModelError> {
    let args = &Args::new(config);
    expect_activation(args, Activation::GeluTanh)?;
    let sizes = Sizes::lower(args)?;
    let rope = rope(args, sizes.attention.head_dim, Theta::or(10_000.0))?;
    let windows = sizes.windows(args, |layer| layer.is_multiple_of(2))?;
    let attention = attention(args, &sizes, Some(50.0))?;
    let multipliers = multipliers(args, &sizes, Some(30.0))?;
    let mlp = sizes.mlp(Activation::GeluTanh, false);

    Decoder::build(weights, sizes, &[rope], sizes.norm(), multipliers, |layer| {
        let attention = AttentionSpec { window: layer.of(&windows), ..attention };
        block(layer, 0, &attention, mlp)
    })
}

/// Attention of the Gemma families; `cap` is the default soft cap of its scores.
pub(super) fn attention(
    args: &Args<'_>,
    sizes: &Sizes,
    cap: Option<f64>,
) -> Result<AttentionSpec, ConfigError> {
    let bias = args.flag("attention_bias", false)?;
    let scale = args.factor("query_pre_attn_scalar", 256.0)?.sqrt().recip();
    let softcap = softcap(args, "attn_logit_softcapping", cap)?;
    Ok(AttentionSpec { bias, output_bias: bias, scale, softcap, ..AttentionSpec::plain(sizes.attention) })
}

/// Embeddings are multiplied by √hidden, rounded to bf16 as in training; `cap` is the default soft cap of logits.
pub(super) fn multipliers(
    args: &Args<'_>,
    sizes: &Sizes,
    cap: Option<f64>,
) -> Result<Multipliers, ConfigError> {
    #[expect(clippy::cast_precision_loss, reason = "widths are small")]
    let embedding = bf16::from_f64((sizes.attention.hidden as f64).sqrt()).to_f32();
    let logits_softcap = softcap(args, "final_logit_softcapping", cap)?;
    Ok(Multipliers { embedding: Some(embedding), logits_softcap, ..Multipliers::default() })
}

/// A soft cap, if there is one. An explicit `null` means none; an absent field means `default`.
fn softcap(args: &Args<'_>, name: &str, default: Option<f64>) -> Result<Option<f32>, ConfigError> {
    let default = if args.mentions(name) { None } else { default };
    let cap = args.number(name)?.or(default).map(|cap| positive(name, cap)).transpose()?;
    #[expect(clippy::cast_possible_truncation, reason = "computed in f32")]
    Ok(cap.map(|cap| cap as f32))
}

/// One layer of the Gemma families.
pub(super) fn block(
    layer: &mut Layer<'_, '_>,
    rope: usize,
    attention: &AttentionSpec,
    mlp: MlpShape,
) -> Result<Block, WeightsError> {
    Ok(Block {
        rope: Some(rope),
        attention_norms: layer.norms(Some("input_layernorm"), Some("post_attention_layernorm"))?,
        attention: layer.attention(attention)?,
        feed_forward_norms: layer
            .norms(Some("pre_feedforward_layernorm"), Some("post_feedforward_layernorm"))?,
        feed_forward: layer.mlp(mlp)?,
    })
}
