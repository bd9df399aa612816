//! What answers look like, for the OpenAPI document.

use serde_json::{Map, Value, json};

/// Schemas of answers, by name.
pub(super) fn schemas() -> Map<String, Value> {
    let text = json!({"type": "string"});
    let count = json!({"type": "integer", "minimum": 0});
    let maybe_text = json!({"type": ["string", "null"]});
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let maybe = |name: &str| json!({"anyOf": [reference(name), {"type": "null"}]});
    let list = |items: &Value| json!({"type": "array", "items": items});
    let finish = |reasons: &[&str]| json!({"type": "string", "enum": reasons});
    let usage = json!({
        "prompt_tokens": count, "completion_tokens": count, "total_tokens": count,
        "prompt_tokens_details": exactly(&json!({"cached_tokens": count})),
    });
    let answer = |kind: &str, choice: &str| {
        exactly(&json!({
            "id": text, "object": {"const": kind}, "created": count, "model": text, "system_fingerprint": text,
            "choices": list(&reference(choice)), "usage": reference("Usage"),
        }))
    };
    let likely = json!({
        "token": text, "logprob": {"type": "number", "maximum": 0},
        "bytes": list(&json!({"type": "integer", "minimum": 0, "maximum": 255})),
    });
    let mut token = likely.clone();
    token["top_logprobs"] = list(&exactly(&likely));
    let call = json!({
        "id": text, "type": {"const": "function"},
        "function": exactly(&json!({"name": text, "arguments": text})),
    });
    let surgery = json!({
        "active": {"type": "boolean"}, "file": maybe_text, "digest": maybe_text, "weights_sha256": maybe_text,
        "operations": count, "tensors_edited": count, "donors": list(&text),
    });
    let model = json!({
        "id": text, "object": {"const": "model"}, "created": count, "owned_by": text,
        "meta": exactly(&json!({
            "dtype_policy": text, "n_ctx": {"type": ["integer", "null"]}, "n_vocab": count,
            "surgery": exactly(&surgery),
        })),
    });
    let mut message = exactly(&json!({
        "role": {"const": "assistant"}, "content": maybe_text, "refusal": {"type": "null"},
    }));
    // Only where tools are called.
    message["properties"]["tool_calls"] = list(&exactly(&call));
    let error = json!({"message": text, "type": text, "param": maybe_text, "code": maybe_text});
    let health = json!({"active": {"type": "boolean"}, "digest": maybe_text});
    let number_or_none = json!({"type": ["number", "null"]});
    let all = [
        ("Error", exactly(&json!({"error": exactly(&error)}))),
        ("Usage", exactly(&usage)),
        ("ChatCompletion", answer("chat.completion", "ChatChoice")),
        (
            "ChatChoice",
            exactly(&json!({
                "index": count, "message": message, "logprobs": maybe("ChatLogprobs"),
                "finish_reason": finish(&["stop", "length", "tool_calls"]),
            })),
        ),
        ("ChatLogprobs", exactly(&json!({"content": list(&exactly(&token)), "refusal": {"type": "null"}}))),
        ("Completion", answer("text_completion", "CompletionChoice")),
        (
            "CompletionChoice",
            exactly(&json!({
                "index": count, "text": text, "logprobs": maybe("CompletionLogprobs"),
                "finish_reason": finish(&["stop", "length"]),
            })),
        ),
        (
            "CompletionLogprobs",
            exactly(&json!({
                "tokens": list(&text), "token_logprobs": list(&number_or_none),
                "top_logprobs": list(&json!({
                    "type": ["object", "null"], "additionalProperties": {"type": "number"},
                })),
                "text_offset": list(&count),
            })),
        ),
        ("Model", exactly(&model)),
        ("ModelList", exactly(&json!({"object": {"const": "list"}, "data": list(&reference("Model"))}))),
        (
            "Tokens",
            exactly(&json!({
                "tokens": list(&count), "count": count, "max_model_len": {"type": ["integer", "null"]},
            })),
        ),
        ("Text", exactly(&json!({"prompt": text}))),
        ("Health", exactly(&json!({"status": {"const": "ok"}, "surgery": exactly(&health)}))),
        (
            "Loading",
            exactly(&json!({
                "status": {"const": "loading"}, "phase": text, "surgery": exactly(&health), "error": exactly(&error),
            })),
        ),
    ];
    all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// An object with all of these properties and no others.
fn exactly(properties: &Value) -> Value {
    let names: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    json!({"type": "object", "required": names, "additionalProperties": false, "properties": properties})
}
