//! Constraints on requests that their types do not express.

use serde_json::{Map, Value, json};

use crate::generate::Limits;
use crate::serve::request::MAX_STOP_STRINGS;

/// Narrows the request schemas, derived from the request types, to what the checks accept on a server with this maximum
/// of `n` and a model with these limits.
pub(super) fn narrow(schemas: &mut Value, max_n: usize, limits: Limits) {
    let only = |values: Value| json!({"enum": values});
    let null = json!({"type": "null"});
    let mut set = |request: &str, field: &str, schema: Value| {
        schemas[request]["properties"][field] = schema;
    };
    for request in ["ChatRequest", "CompletionRequest"] {
        set(request, "store", only(json!([null, false])));
        set(request, "n", json!({"type": ["integer", "null"], "minimum": 1, "maximum": max_n}));
        set(
            request,
            "stop",
            json!({"description": "Strings to stop before.", "anyOf": [{"type": ["string", "null"]},
                {"type": "array", "items": {"type": "string"}, "maxItems": MAX_STOP_STRINGS}]}),
        );
        set(
            request,
            "seed",
            json!({"type": ["integer", "null"], "minimum": i64::MIN, "maximum": u64::MAX,
                "description": "The same seed gives the same text; choice i uses seed + i."}),
        );
        set(
            request,
            "logit_bias",
            json!({"type": ["object", "null"], "description": "Token ids and the values added to their logits.",
                "propertyNames": {"pattern": "^[0-9]{1,9}$"},
                "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100}}),
        );
    }
    for (request, minimum) in [("ChatRequest", 1), ("CompletionRequest", 0)] {
        for (field, description) in [
            ("max_tokens", "Maximum number of tokens to generate; prompt and answer must fit the context."),
            ("max_completion_tokens", "Newer name of `max_tokens`."),
        ] {
            let mut schema =
                json!({"type": ["integer", "null"], "minimum": minimum, "description": description});
            if let Some(context) = limits.context {
                schema["maximum"] = context.into();
            }
            set(request, field, schema);
        }
    }
    set("ChatRequest", "messages", json!({"type": "array", "minItems": 1, "items": message()}));
    set("ChatRequest", "tool_choice", only(json!([null, "auto", "none"])));
    set("ChatRequest", "modalities", only(json!([null, ["text"]])));
    set("ChatRequest", "functions", only(json!([null, []])));
    set("ChatRequest", "function_call", only(json!([null, "none", "auto"])));
    set("ChatRequest", "verbosity", only(json!([null, "medium"])));
    set("ChatRequest", "audio", null.clone());
    set("ChatRequest", "web_search_options", null);
    set("CompletionRequest", "suffix", only(json!([null, ""])));
    set("CompletionRequest", "best_of", only(json!([null, 1])));
    if let Some(last) = limits.vocabulary.and_then(|count| count.checked_sub(1)) {
        let tokens = json!({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": last}});
        set("DetokenizeRequest", "tokens", tokens);
    }
    // Some fields require another one to be true.
    let requires = |option: &str, flag: &str| {
        json!({"anyOf": [
            {"properties": {(option): {"type": "null"}}},
            {"required": [flag], "properties": {(flag): {"const": true}}},
        ]})
    };
    schemas["ChatRequest"]["allOf"] =
        json!([requires("stream_options", "stream"), requires("top_logprobs", "logprobs")]);
    schemas["CompletionRequest"]["allOf"] = json!([requires("stream_options", "stream")]);
    schemas["TokenizeRequest"]["oneOf"] = json!([
        {"required": ["prompt"], "properties": {"prompt": {"type": "string"}, "messages": {"type": "null"}}},
        {"required": ["messages"], "properties": {"messages": {"type": "array"}, "prompt": {"type": "null"}}},
    ]);
}

/// A message of a conversation.
fn message() -> Value {
    let part = json!({
        "type": "object", "required": ["type", "text"],
        "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
    });
    let content = json!({"anyOf": [{"type": "string"}, {"type": "array", "items": part}]});
    let mut nullable_content = content.clone();
    if let Some(forms) = nullable_content["anyOf"].as_array_mut() {
        forms.push(json!({"type": "null"}));
    }
    let one = |roles: Value, content: Value, required: Value| json!({"type": "object", "required": required, "properties": {"role": {"enum": roles}, "content": content}});
    json!({"oneOf": [
        one(json!(["system", "developer", "user", "tool", "function"]), content, json!(["role", "content"])),
        one(json!(["assistant"]), nullable_content, json!(["role"])),
    ]})
}

/// Adds the common fields to a request's own.
pub(super) fn merged(common: &Value, mut own: Value) -> Value {
    if let (Some(own), Some(common)) = (own["properties"].as_object_mut(), common["properties"].as_object()) {
        let common: Map<String, Value> = common.clone();
        own.extend(common);
    }
    own
}
