//! What `/tokenize` and `/detokenize` take.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A text, or a conversation that the chat template is to make one of.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct TokenizeRequest {
    /// The text.
    pub(in crate::serve) prompt: Option<String>,
    /// The conversation.
    #[schema(value_type = Option<Vec<Object>>)]
    pub(in crate::serve) messages: Option<Vec<Map<String, Value>>>,
    /// Whether to add the tokens that the model wants around a text; a template brings its own.
    pub(in crate::serve) add_special_tokens: Option<bool>,
    /// Without any effect: all models here have the same tokenizer.
    #[expect(dead_code, reason = "accepted without any effect")]
    pub(in crate::serve) model: Option<String>,
}

/// Token ids.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct DetokenizeRequest {
    /// The ids.
    pub(in crate::serve) tokens: Vec<u32>,
    /// Without any effect: all models here have the same tokenizer.
    #[expect(dead_code, reason = "accepted without any effect")]
    pub(in crate::serve) model: Option<String>,
}
