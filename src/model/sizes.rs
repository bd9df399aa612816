//! [`Sizes`]: the values of `config.json` that every family reads.

use super::ConfigError;
use super::args::Args;
use crate::checkpoint::NormOffset;
use crate::nn::{Activation, AttentionShape, MlpShape, NormSpec, Window};

/// The values of `config.json` that every family reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) attention: AttentionShape,
    pub(super) intermediate: usize,
    pub(super) layers: usize,
    pub(super) vocabulary: usize,
    pub(super) context: Option<usize>,
    eps: f32,
    /// Whether norm weights are stored minus 1.
    plus_one: bool,
}

impl Sizes {
    /// Reads the values; the family's defaults replace absent ones.
    pub(super) fn lower(args: &Args<'_>) -> Result<Self, ConfigError> {
        let (config, defaults) = (args.config(), args.family().defaults);
        let hidden = args.size_or("hidden_size", config.hidden_size)?;
        let (heads, kv_heads, head_dim) = args.heads(hidden)?;
        #[expect(clippy::cast_possible_truncation, reason = "computed in f32")]
        let eps = args.number("rms_norm_eps")?.unwrap_or(1e-6) as f32;
        let vocabulary = defaults.vocabulary.and_then(|size| usize::try_from(size).ok());
        let vocabulary = match (args.size("vocab_size")?, vocabulary) {
            (Some(given), _) | (None, Some(given)) => given,
            (None, None) => args.required_size("vocab_size")?,
        };
        Ok(Self {
            attention: AttentionShape { hidden, heads, kv_heads, head_dim },
            intermediate: args.size_or("intermediate_size", config.intermediate_size)?,
            layers: args.size_or("num_hidden_layers", defaults.layers)?,
            vocabulary,
            context: args.size("max_position_embeddings")?,
            eps,
            plus_one: args.family().norm_offset == NormOffset::One,
        })
    }

    /// The shape of a plain feed-forward network.
    pub(super) fn mlp(&self, activation: Activation, bias: bool) -> MlpShape {
        MlpShape { hidden: self.attention.hidden, inner: self.intermediate, bias, activation }
    }

    /// A norm of the residual stream or of heads.
    pub(super) fn norm(&self) -> NormSpec {
        NormSpec { eps: self.eps, plus_one: self.plus_one }
    }

    /// Each layer's window: according to `layer_types`, else `sliding_window` for the layers that `is_sliding` accepts.
    pub(super) fn windows(
        &self,
        args: &Args<'_>,
        is_sliding: impl Fn(usize) -> bool,
    ) -> Result<Vec<Window>, ConfigError> {
        let window = args.size("sliding_window")?;
        let sliding: Vec<bool> = match args.words("layer_types")? {
            None => (0..self.layers).map(is_sliding).collect(),
            Some(types) if types.len() == self.layers => {
                types.iter().map(|&kind| kind == "sliding_attention").collect()
            }
            Some(types) => {
                let (found, needed) = (types.len(), self.layers);
                return Err(ConfigError::Length {
                    name: "layer_types".to_owned(),
                    found,
                    needed,
                    of: "layers",
                });
            }
        };
        Ok(sliding.into_iter().map(|sliding| window.filter(|_| sliding)).collect())
    }
}

/// Checks that the configuration gives this activation, under either of its names, or none.
pub(super) fn expect_activation(args: &Args<'_>, activation: Activation) -> Result<(), ConfigError> {
    let known = match activation {
        Activation::Silu => "silu",
        Activation::GeluTanh => "gelu_pytorch_tanh",
    };
    for name in ["hidden_activation", "hidden_act"] {
        match args.word(name)? {
            None => {}
            Some(word) if word == known => return Ok(()),
            Some(other) => {
                return Err(ConfigError::UnsupportedActivation {
                    name,
                    value: other.to_owned(),
                    model_type: args.model_type().to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// The number of experts, of `count`, that a token takes.
pub(super) fn experts_taken(args: &Args<'_>, count: usize) -> Result<usize, ConfigError> {
    let taken = args.required_size("num_experts_per_tok")?;
    if taken > count {
        return Err(ConfigError::TooFewExperts { taken, count });
    }
    Ok(taken)
}
