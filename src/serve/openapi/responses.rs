//! Schemas of responses for the OpenAPI document.

use serde_json::{Map, Value, json};

/// Schemas of responses by name.
pub(super) fn schemas() -> Map<String, Value> {
    let text = json!({"type": "string"});
    let count = json!({"type": "integer", "minimum": 0});
    let nullable_text = json!({"type": ["string", "null"]});
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let nullable = |name: &str| json!({"anyOf": [reference(name), {"type": "null"}]});
    let list = |items: &Value| json!({"type": "array", "items": items});
    let finish = |reasons: &[&str]| json!({"type": "string", "enum": reasons});
    let usage = json!({
        "prompt_tokens": count, "completion_tokens": count, "total_tokens": count,
        "prompt_tokens_details": exactly(&json!({"cached_tokens": count})),
    });
    let response = |kind: &str, choice: &str| {
        exactly(&json!({
            "id": text, "object": {"const": kind}, "created": count, "model": text, "system_fingerprint": text,
            "choices": list(&reference(choice)), "usage": reference("Usage"),
        }))
    };
    let logprob = json!({
        "token": text, "logprob": {"type": "number", "maximum": 0},
        "bytes": list(&json!({"type": "integer", "minimum": 0, "maximum": 255})),
    });
    let mut token = logprob.clone();
    token["top_logprobs"] = list(&exactly(&logprob));
    let call = json!({
        "id": text, "type": {"const": "function"},
        "function": exactly(&json!({"name": text, "arguments": text})),
    });
    let surgery = json!({
        "active": {"type": "boolean"}, "file": nullable_text, "digest": nullable_text, "weights_sha256": nullable_text,
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
        "role": {"const": "assistant"}, "content": nullable_text, "refusal": {"type": "null"},
    }));
    // Not required: present only if the model calls tools.
    message["properties"]["tool_calls"] = list(&exactly(&call));
    let error = json!({"message": text, "type": text, "param": nullable_text, "code": nullable_text});
    let health = json!({"active": {"type": "boolean"}, "digest": nullable_text});
    let nullable_number = json!({"type": ["number", "null"]});
    let all = [
        ("Error", exactly(&json!({"error": exactly(&error)}))),
        ("Usage", exactly(&usage)),
        ("ChatCompletion", response("chat.completion", "ChatChoice")),
        (
            "ChatChoice",
            exactly(&json!({
                "index": count, "message": message, "logprobs": nullable("ChatLogprobs"),
                "finish_reason": finish(&["stop", "length", "tool_calls"]),
            })),
        ),
        ("ChatLogprobs", exactly(&json!({"content": list(&exactly(&token)), "refusal": {"type": "null"}}))),
        ("Completion", response("text_completion", "CompletionChoice")),
        (
            "CompletionChoice",
            exactly(&json!({
                "index": count, "text": text, "logprobs": nullable("CompletionLogprobs"),
                "finish_reason": finish(&["stop", "length"]),
            })),
        ),
        (
            "CompletionLogprobs",
            exactly(&json!({
                "tokens": list(&text), "token_logprobs": list(&nullable_number),
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

/// An object with exactly these properties.
fn exactly(properties: &Value) -> Value {
    let names: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    json!({"type": "object", "required": names, "additionalProperties": false, "properties": properties})
}
