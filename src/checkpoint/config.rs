//! [`ModelConfig`]: what `config.json` says.

use super::Quantization;

/// `config.json`, with the values that planning needs lifted out of the places families keep them in.
#[derive(Debug, Clone, Default)]
pub struct ModelConfig {
    /// The whole object.
    pub json: serde_json::Map<String, serde_json::Value>,
    /// `model_type` of the root, empty when absent.
    pub model_type: String,
    /// Query heads (root, `text_config`, `llm_config`, `language_config`, `thinker_config.text_config`, or the model
    /// type's default).
    pub heads: Option<u64>,
    /// Key/value heads.
    pub kv_heads: Option<u64>,
    /// `head_dim` where it is explicit.
    pub head_dim: Option<u64>,
    /// `hidden_size`.
    pub hidden_size: Option<u64>,
    /// `intermediate_size`.
    pub intermediate_size: Option<u64>,
    /// `tie_word_embeddings`, root or text config; `None` when neither says.
    pub tied_embeddings: Option<bool>,
    /// Whether there is a `vision_config`.
    pub is_vision_language: bool,
    /// `quantization`, else `quantization_config`.
    pub quantization: Option<Quantization>,
}

impl ModelConfig {
    /// The model type of the text model: `text_config.model_type` and its like, else the root's.
    #[must_use]
    pub fn text_model_type(&self) -> &str {
        todo!()
    }
}
