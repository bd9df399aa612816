//! [`ModelError`]: why no model can be built.

use serde_json::Value;

use crate::weights::WeightsError;

/// Why no model can be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// `config.json` does not say which family the model belongs to.
    #[error("`config.json` has no `model_type`")]
    NoModelType,
    /// No family here has this `model_type`.
    #[error("unsupported `model_type` `{0}`")]
    UnsupportedType(String),
    /// The configuration is incomplete, contradicts itself, or asks for something that is not supported.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tensors do not fit the configuration, or cannot be loaded.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

/// What is wrong with the values of `config.json`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value that the model needs is absent or null.
    #[error("`config.json` lacks `{0}`, which the model needs")]
    Missing(String),
    /// A value has the wrong type or is out of range.
    #[error("`{name}` in `config.json` is `{value}`, not {wanted}")]
    Wrong {
        /// Its name.
        name: String,
        /// The value.
        value: Value,
        /// What it has to be, with an article.
        wanted: &'static str,
    },
    /// The family computes with another activation.
    #[error("`{name}` `{value}` is not what `{model_type}` computes")]
    UnsupportedActivation {
        /// `hidden_act` or `hidden_activation`.
        name: &'static str,
        /// The activation that the configuration asks for.
        value: String,
        /// The text model's type.
        model_type: String,
    },
    /// Rotary positions of a type that is not supported.
    #[error("unsupported rotary position type `{0}` in `config.json`")]
    UnsupportedRope(String),
    /// The model sees later tokens, so it cannot continue a text.
    #[error("`use_bidirectional_attention` makes a model that cannot continue texts")]
    Bidirectional,
    /// Query heads are no multiple of key/value heads.
    #[error("{heads} heads cannot share {kv_heads} key/value heads evenly")]
    UnevenHeads {
        /// Query heads.
        heads: usize,
        /// Key/value heads.
        kv_heads: usize,
    },
    /// `hidden_size` is no multiple of the heads, and `head_dim` is not given.
    #[error("`hidden_size` {hidden} is not a multiple of {heads} heads")]
    UndividedHidden {
        /// `hidden_size`.
        hidden: usize,
        /// Query heads.
        heads: usize,
    },
    /// Rotation needs pairs of dimensions.
    #[error("the head width {0} is odd: rotary positions need pairs")]
    OddHeadDim(usize),
    /// The share of a head that is rotated is not a whole number of pairs.
    #[error("`partial_rotary_factor` {share} of a head width of {head_dim} is not a whole number of pairs")]
    PartialRotation {
        /// `partial_rotary_factor`.
        share: f64,
        /// Width of a head.
        head_dim: usize,
    },
    /// A list has another length than it needs.
    #[error("`{name}` has {found} entries for {needed} {of}")]
    Length {
        /// Its name.
        name: String,
        /// Its length.
        found: usize,
        /// The length it needs.
        needed: usize,
        /// What there is one entry for, in the plural.
        of: &'static str,
    },
    /// A token takes more experts than there are.
    #[error("`num_experts_per_tok` is {taken}, but there are {count} experts")]
    TooFewExperts {
        /// Experts that a token takes.
        taken: usize,
        /// Experts that there are.
        count: usize,
    },
}
