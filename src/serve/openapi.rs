//! The OpenAPI document: request schemas come from the types that read requests.

mod answers;
mod requests;

use std::sync::{Arc, OnceLock};

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::app::App;
use super::request::{ChatRequest, Common, CompletionRequest, DetokenizeRequest, TokenizeRequest};
use crate::generate::Limits;

/// `/openapi.json`.
pub(super) async fn document(State(app): State<Arc<App>>) -> Json<Value> {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    Json(DOCUMENT.get_or_init(|| make(app.settings.max_batch, app.texts.limits)).clone())
}

/// The interface of a server that gives so many answers at once with a model of such limits.
fn make(answers: usize, limits: Limits) -> Value {
    let mut schemas = answers::schemas();
    let mut parts = Vec::new();
    Common::schemas(&mut parts);
    ChatRequest::schemas(&mut parts);
    CompletionRequest::schemas(&mut parts);
    for (name, schema) in parts {
        schemas.insert(name, plain(&schema));
    }
    let common = plain(&Common::schema());
    schemas.insert("ChatRequest".to_owned(), requests::merged(&common, plain(&ChatRequest::schema())));
    schemas.insert(
        "CompletionRequest".to_owned(),
        requests::merged(&common, plain(&CompletionRequest::schema())),
    );
    schemas.insert("TokenizeRequest".to_owned(), plain(&TokenizeRequest::schema()));
    schemas.insert("DetokenizeRequest".to_owned(), plain(&DetokenizeRequest::schema()));
    let mut schemas = Value::Object(schemas);
    requests::narrow(&mut schemas, answers, limits);
    let data = "A chunk of the answer or an error, as JSON; the last one of a complete answer is `[DONE]`.";
    let event = json!({
        "type": "object", "required": ["data"], "properties": {"data": {"type": "string", "description": data}},
        "description": "One event of the stream.",
    });
    let stream = json!({"text/event-stream": {"schema": event}});
    let document =
        json!({"application/json": {"schema": {"type": "object", "required": ["openapi", "paths"]}}});
    let mut models = operation("The models that answer", None, &object("ModelList", None), &GIVEN);
    let mut model = operation("One model", None, &object("Model", None), &["400", "401", "404", "503"]);
    model["operationId"] = "model".into();
    models["responses"]["200"]["links"] =
        json!({"first": {"operationId": "model", "parameters": {"id": "$response.body#/data/0/id"}}});
    let mut health = operation("Whether it is ready", None, &object("Health", None), &["503"]);
    health["responses"]["503"]["content"]["application/json"]["schema"] = json!({"anyOf": [
        {"$ref": "#/components/schemas/Loading"}, {"$ref": "#/components/schemas/Error"},
    ]});
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "mlxcel",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "OpenAI's interface to a model whose weights may have been operated on. The header \
                            `x-mlxcel-surgery` and `system_fingerprint` tell which weights answer.",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "security": [{}, {"key": []}],
        "paths": {
            "/v1/chat/completions": {
                "post": operation("Answer a conversation", Some("ChatRequest"), &object("ChatCompletion", Some(&stream)), &ASKED),
            },
            "/v1/completions": {
                "post": operation("Continue a text", Some("CompletionRequest"), &object("Completion", Some(&stream)), &ASKED),
            },
            "/tokenize": {
                "post": operation("A text's token ids", Some("TokenizeRequest"), &object("Tokens", None), &READ),
            },
            "/detokenize": {
                "post": operation("The text of token ids", Some("DetokenizeRequest"), &object("Text", None), &READ),
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
                "get": operation("Figures for Prometheus", None, &text("application/openmetrics-text"), &["401"]),
            },
            "/openapi.json": {"get": operation("This document", None, &document, &["401"])},
            "/": {"get": operation("A page to chat on", None, &text("text/html"), &["401"])},
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    })
}

const ASKED: [&str; 10] = ["400", "401", "404", "408", "413", "429", "500", "503", "504", "415"];
const READ: [&str; 7] = ["400", "401", "404", "408", "413", "500", "503"];
const GIVEN: [&str; 2] = ["401", "503"];

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
    responses.insert("200".to_owned(), json!({"description": "Fine", "content": content}));
    for code in errors {
        let schema = json!({"$ref": "#/components/schemas/Error"});
        let error = json!({"description": "An error", "content": {"application/json": {"schema": schema}}});
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
    fn requests_are_described_with_all_their_fields_and_no_others() {
        let document = make(8, Limits { vocabulary: Some(512), context: Some(256) });
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
    fn every_reference_leads_somewhere() {
        let document = make(8, Limits { vocabulary: Some(512), context: Some(256) });
        let text = document.to_string();
        for (at, start) in text.match_indices("\"$ref\":\"#") {
            let pointer = text[at + start.len()..].split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
