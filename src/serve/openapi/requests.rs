//! What the types of requests leave open and their checks do not.

use serde_json::{Map, Value, json};

use crate::generate::Limits;
use crate::serve::request::STOPS;

/// Narrows the schemas of requests, made from their types, to what a server takes that gives so many answers at once
/// with a model of such limits.
pub(super) fn narrow(schemas: &mut Value, answers: usize, limits: Limits) {
    let only = |values: Value| json!({"enum": values});
    let nothing = json!({"type": "null"});
    let mut set = |request: &str, field: &str, schema: Value| {
        schemas[request]["properties"][field] = schema;
    };
    for request in ["ChatRequest", "CompletionRequest"] {
        set(request, "store", only(json!([null, false])));
        set(request, "n", json!({"type": ["integer", "null"], "minimum": 1, "maximum": answers}));
        set(
            request,
            "stop",
            json!({"description": "Texts to stop before.", "anyOf": [{"type": ["string", "null"]},
                {"type": "array", "items": {"type": "string"}, "maxItems": STOPS}]}),
        );
        set(
            request,
            "seed",
            json!({"type": ["integer", "null"], "minimum": i64::MIN, "maximum": u64::MAX,
                "description": "The same seed gives the same text. Answer i of several has seed + i."}),
        );
        set(
            request,
            "logit_bias",
            json!({"type": ["object", "null"], "description": "Added to the logits of tokens, by id.",
                "propertyNames": {"pattern": "^[0-9]{1,9}$"},
                "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100}}),
        );
    }
    for (request, least) in [("ChatRequest", 1), ("CompletionRequest", 0)] {
        for (field, description) in [
            ("max_tokens", "How many tokens at most; with the prompt no more than the model's context."),
            ("max_completion_tokens", "The newer name of `max_tokens`."),
        ] {
            let mut schema =
                json!({"type": ["integer", "null"], "minimum": least, "description": description});
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
    set("ChatRequest", "audio", nothing.clone());
    set("ChatRequest", "web_search_options", nothing);
    set("CompletionRequest", "suffix", only(json!([null, ""])));
    set("CompletionRequest", "best_of", only(json!([null, 1])));
    if let Some(last) = limits.vocabulary.and_then(|count| count.checked_sub(1)) {
        let tokens = json!({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": last}});
        set("DetokenizeRequest", "tokens", tokens);
    }
    // A stream's options and alternatives are only for whoever asks for a stream and for log-probabilities.
    let needs = |option: &str, flag: &str| {
        json!({"anyOf": [
            {"properties": {(option): {"type": "null"}}},
            {"required": [flag], "properties": {(flag): {"const": true}}},
        ]})
    };
    schemas["ChatRequest"]["allOf"] =
        json!([needs("stream_options", "stream"), needs("top_logprobs", "logprobs")]);
    schemas["CompletionRequest"]["allOf"] = json!([needs("stream_options", "stream")]);
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
    let said = json!({"anyOf": [{"type": "string"}, {"type": "array", "items": part}]});
    let mut perhaps = said.clone();
    if let Some(forms) = perhaps["anyOf"].as_array_mut() {
        forms.push(json!({"type": "null"}));
    }
    let one = |roles: Value, content: Value, required: Value| json!({"type": "object", "required": required, "properties": {"role": {"enum": roles}, "content": content}});
    json!({"oneOf": [
        one(json!(["system", "developer", "user", "tool", "function"]), said, json!(["role", "content"])),
        one(json!(["assistant"]), perhaps, json!(["role"])),
    ]})
}

/// A request's own fields and the common ones.
pub(super) fn merged(common: &Value, mut own: Value) -> Value {
    if let (Some(own), Some(common)) = (own["properties"].as_object_mut(), common["properties"].as_object()) {
        let common: Map<String, Value> = common.clone();
        own.extend(common);
    }
    own
}
