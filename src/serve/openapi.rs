//! The OpenAPI document. Request schemas are derived from the request types.

mod requests;
mod responses;

use std::sync::{Arc, OnceLock};

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::app_state::AppState;
use super::request::{ChatRequest, CommonFields, CompletionRequest, DetokenizeRequest, TokenizeRequest};
use crate::generate::Limits;

/// `/openapi.json`.
pub(super) async fn document(State(app): State<Arc<AppState>>) -> Json<Value> {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    Json(DOCUMENT.get_or_init(|| document_for(app.settings.max_batch, app.text_pipeline.limits)).clone())
}

/// The document of a server with this maximum of `n` and a model with these limits.
fn document_for(max_n: usize, limits: Limits) -> Value {
    let mut schemas = responses::schemas();
    let mut parts = Vec::new();
    CommonFields::schemas(&mut parts);
    ChatRequest::schemas(&mut parts);
    CompletionRequest::schemas(&mut parts);
    for (name, schema) in parts {
        schemas.insert(name, plain(&schema));
    }
    let common = plain(&CommonFields::schema());
    schemas.insert("ChatRequest".to_owned(), requests::merged(&common, plain(&ChatRequest::schema())));
    schemas.insert(
        "CompletionRequest".to_owned(),
        requests::merged(&common, plain(&CompletionRequest::schema())),
    );
    schemas.insert("TokenizeRequest".to_owned(), plain(&TokenizeRequest::schema()));
    schemas.insert("DetokenizeRequest".to_owned(), plain(&DetokenizeRequest::schema()));
    let mut schemas = Value::Object(schemas);
    requests::narrow(&mut schemas, max_n, limits);
    let data = "A chunk of the response or an error, as JSON; a complete stream ends with `[DONE]`.";
    let event = json!({
        "type": "object", "required": ["data"], "properties": {"data": {"type": "string", "description": data}},
        "description": "An event of the stream.",
    });
    let stream = json!({"text/event-stream": {"schema": event}});
    let document =
        json!({"application/json": {"schema": {"type": "object", "required": ["openapi", "paths"]}}});
    let mut models = operation("List the served models", None, &object("ModelList", None), &LIST_ERRORS);
    let mut model = operation("Get a model", None, &object("Model", None), &["400", "401", "404", "503"]);
    model["operationId"] = "model".into();
    models["responses"]["200"]["links"] =
        json!({"first": {"operationId": "model", "parameters": {"id": "$response.body#/data/0/id"}}});
    let mut health = operation("Check whether the server is ready", None, &object("Health", None), &["503"]);
    health["responses"]["503"]["content"]["application/json"]["schema"] = json!({"anyOf": [
        {"$ref": "#/components/schemas/Loading"}, {"$ref": "#/components/schemas/Error"},
    ]});
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "mlxcel",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "OpenAI-compatible API of a model whose weights may have been edited. The header \
                            `x-mlxcel-surgery` and `system_fingerprint` identify the weights.",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "security": [{}, {"key": []}],
        "paths": {
            "/v1/chat/completions": {
                "post": operation("Generate an answer to a conversation", Some("ChatRequest"), &object("ChatCompletion", Some(&stream)), &GENERATION_ERRORS),
            },
            "/v1/completions": {
                "post": operation("Generate a continuation of a text", Some("CompletionRequest"), &object("Completion", Some(&stream)), &GENERATION_ERRORS),
            },
            "/tokenize": {
                "post": operation("Encode a text as token ids", Some("TokenizeRequest"), &object("Tokens", None), &TOKEN_ERRORS),
            },
            "/detokenize": {
                "post": operation("Decode token ids to text", Some("DetokenizeRequest"), &object("Text", None), &TOKEN_ERRORS),
            },
            "/v1/models": {"get": models},
            "/v1/models/{id}": {
                "parameters": [
                    {"name": "id", "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}},
                ],
                "get": model,
            },
            "/health": {"get": health},
            "/metrics": {
                "get": operation("Prometheus metrics", None, &text("application/openmetrics-text"), &["401"]),
            },
            "/openapi.json": {"get": operation("This document", None, &document, &["401"])},
            "/": {"get": operation("Chat page", None, &text("text/html"), &["401"])},
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    })
}

/// Statuses of errors of endpoints that generate.
const GENERATION_ERRORS: [&str; 9] = ["400", "401", "404", "408", "413", "429", "500", "503", "504"];
/// Statuses of errors of `/tokenize` and `/detokenize`.
const TOKEN_ERRORS: [&str; 7] = ["400", "401", "404", "408", "413", "500", "503"];
/// Statuses of errors of `/v1/models`.
const LIST_ERRORS: [&str; 2] = ["401", "503"];

fn object(name: &str, more: Option<&Value>) -> Value {
    let schema = json!({"$ref": format!("#/components/schemas/{name}")});
    let mut content = json!({"application/json": {"schema": schema}});
    if let (Some(content), Some(more)) = (content.as_object_mut(), more.and_then(Value::as_object)) {
        content.extend(more.clone());
    }
    content
}

fn text(kind: &str) -> Value {
    json!({(kind): {"schema": {"type": "string"}}})
}

fn operation(summary: &str, request: Option<&str>, content: &Value, errors: &[&str]) -> Value {
    let mut responses = Map::new();
    responses.insert("200".to_owned(), json!({"description": "Success", "content": content}));
    for code in errors {
        let schema = json!({"$ref": "#/components/schemas/Error"});
        let error = json!({"description": "Error", "content": {"application/json": {"schema": schema}}});
        responses.insert((*code).to_owned(), error);
    }
    let mut operation = json!({"summary": summary, "responses": responses});
    if let Some(name) = request {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

fn plain(schema: &RefOr<Schema>) -> Value {
    serde_json::to_value(schema).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_schemas_have_exactly_the_fields_of_requests() {
        let document = document_for(8, Limits { vocabulary: Some(512), context: Some(256) });
        for name in ["ChatRequest", "CompletionRequest"] {
            let schema = &document["components"]["schemas"][name];
            assert_eq!(schema["additionalProperties"], false, "{schema:#}");
            assert_eq!(schema["properties"]["temperature"]["maximum"], 100, "{schema:#}");
        }
        let required = |name: &str| document["components"]["schemas"][name]["required"].clone();
        assert_eq!(required("ChatRequest"), json!(["messages"]));
        assert_eq!(required("CompletionRequest"), json!(["prompt"]));
    }

    #[test]
    fn every_reference_resolves() {
        let document = document_for(8, Limits { vocabulary: Some(512), context: Some(256) });
        let text = document.to_string();
        for (at, start) in text.match_indices("\"$ref\":\"#") {
            let pointer = text[at + start.len()..].split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
