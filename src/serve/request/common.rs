//! [`CommonFields`]: the fields that chat and completion requests share.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use super::body::parse_strict;
use crate::serve::error::ApiError;

/// Fields that chat and completion requests share.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct CommonFields {
    /// Id of the model as listed by `/v1/models`; defaults to the first.
    pub(in crate::serve) model: Option<String>,
    /// Maximum number of tokens to generate.
    pub(super) max_tokens: Option<usize>,
    /// Newer name of `max_tokens`.
    pub(super) max_completion_tokens: Option<usize>,
    /// Sampling temperature; 0 always picks the most likely token.
    #[schema(minimum = 0, maximum = 100)]
    pub(super) temperature: Option<f64>,
    /// Samples from the most likely tokens whose probabilities sum to this value.
    #[schema(minimum = 0, maximum = 1)]
    pub(super) top_p: Option<f64>,
    /// Samples from this many of the most likely tokens; 0 means all.
    pub(super) top_k: Option<usize>,
    /// Samples from tokens whose probability is at least this fraction of the highest.
    #[schema(minimum = 0, maximum = 1)]
    pub(super) min_p: Option<f64>,
    /// Divides the logits of recent tokens; 1 disables it.
    #[schema(minimum = 0.01, maximum = 100)]
    pub(super) repetition_penalty: Option<f64>,
    /// Subtracted from a token's logit for each of its occurrences in the answer.
    #[schema(minimum = -2, maximum = 2)]
    pub(super) frequency_penalty: Option<f64>,
    /// Subtracted once from the logit of every token in the answer.
    #[schema(minimum = -2, maximum = 2)]
    pub(super) presence_penalty: Option<f64>,
    /// The same seed gives the same text; choice i uses seed + i.
    #[schema(value_type = Option<i64>)]
    pub(super) seed: Option<Number>,
    /// Strings to stop before.
    pub(super) stop: Option<Stop>,
    /// Number of choices.
    #[schema(minimum = 1)]
    pub(super) n: Option<usize>,
    /// Sends the answer as server-sent events while it is generated.
    pub(super) stream: Option<bool>,
    pub(super) stream_options: Option<StreamOptions>,
    /// Token ids and the values added to their logits.
    #[schema(value_type = Option<BTreeMap<String, f64>>)]
    pub(super) logit_bias: Option<BTreeMap<String, f64>>,
    pub(super) response_format: Option<ResponseFormat>,
    // No effect on the answer.
    #[expect(dead_code, reason = "accepted without effect")]
    user: Option<String>,
    #[schema(value_type = Option<Object>)]
    #[expect(dead_code, reason = "accepted without effect")]
    metadata: Option<Map<String, Value>>,
    #[expect(dead_code, reason = "accepted without effect")]
    service_tier: Option<String>,
    #[expect(dead_code, reason = "accepted without effect")]
    safety_identifier: Option<String>,
    #[expect(dead_code, reason = "accepted without effect")]
    prompt_cache_key: Option<String>,
    #[expect(dead_code, reason = "accepted without effect")]
    prompt_cache_retention: Option<String>,
    // Not supported.
    #[schema(value_type = Option<bool>)]
    pub(super) store: Option<Value>,
}

/// `stop`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub(super) enum Stop {
    One(String),
    Several(Vec<String>),
}

/// `stream_options`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamOptions {
    /// Sends the usage in a last chunk.
    pub(super) include_usage: Option<bool>,
    /// No effect.
    #[expect(dead_code, reason = "accepted without effect")]
    include_obfuscation: Option<bool>,
}

/// `response_format`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ResponseFormat {
    /// Any text.
    Text {},
    /// A JSON object.
    JsonObject {},
    /// JSON that matches a schema.
    JsonSchema { json_schema: NamedSchema },
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedSchema {
    #[expect(dead_code, reason = "has no effect")]
    name: Option<String>,
    #[expect(dead_code, reason = "has no effect")]
    description: Option<String>,
    /// The schema; defaults to any object.
    #[schema(value_type = Option<Object>)]
    pub(super) schema: Option<Map<String, Value>>,
    #[expect(dead_code, reason = "schemas are always enforced")]
    strict: Option<bool>,
}

impl CommonFields {
    const FIELDS: [&'static str; 24] = [
        "model",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "repetition_penalty",
        "frequency_penalty",
        "presence_penalty",
        "seed",
        "stop",
        "n",
        "stream",
        "stream_options",
        "logit_bias",
        "response_format",
        "user",
        "metadata",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "store",
    ];

    /// Moves the common fields out of a request.
    pub(in crate::serve) fn take(object: &mut Map<String, Value>) -> Result<Self, ApiError> {
        let fields = Self::FIELDS.iter().filter_map(|name| object.remove_entry(*name)).collect();
        parse_strict(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_list_of_common_fields_is_complete() {
        // A field missing from the list would be rejected as unknown.
        let message = serde_json::from_value::<CommonFields>(json!({"?": 1})).unwrap_err().to_string();
        let known: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
        assert_eq!(known, CommonFields::FIELDS);
    }
}
