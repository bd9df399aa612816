//! Requests to `/tokenize` and `/detokenize`.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A text, or a conversation that the chat template renders.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct TokenizeRequest {
    /// The text.
    pub(in crate::serve) prompt: Option<String>,
    /// The conversation.
    #[schema(value_type = Option<Vec<Object>>)]
    pub(in crate::serve) messages: Option<Vec<Map<String, Value>>>,
    /// Whether to add special tokens such as BOS. Default: true for `prompt`, false for `messages`, whose template adds
    /// them.
    pub(in crate::serve) add_special_tokens: Option<bool>,
    /// Has no effect: all served models share one tokenizer.
    #[expect(dead_code, reason = "accepted without effect")]
    pub(in crate::serve) model: Option<String>,
}

/// Token ids.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct DetokenizeRequest {
    /// The ids.
    pub(in crate::serve) tokens: Vec<u32>,
    /// Has no effect: all served models share one tokenizer.
    #[expect(dead_code, reason = "accepted without effect")]
    pub(in crate::serve) model: Option<String>,
}
