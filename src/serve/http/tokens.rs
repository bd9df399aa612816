//! `/tokenize` and `/detokenize`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::run_blocking::run_blocking;
use crate::generate::TemplateInputs;
use crate::serve::app_state::AppState;
use crate::serve::error::ApiError;
use crate::serve::request::{DetokenizeRequest, TokenizeRequest, parse_strict, read_object};

pub(super) async fn tokenize(
    State(app): State<Arc<AppState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let request: TokenizeRequest = parse_strict(read_object(request, app.settings.max_body_bytes).await?)?;
    let tokens = run_blocking(&app, move |app| {
        let tokenizer = &app.text_pipeline.tokenizer;
        match (request.prompt, request.messages) {
            (Some(text), None) => Ok(tokenizer.encode(&text, request.add_special_tokens.unwrap_or(true))?),
            (None, Some(messages)) => {
                let text = app.text_pipeline.template()?.render(&messages, &TemplateInputs::default())?;
                Ok(tokenizer.encode(&text, request.add_special_tokens.unwrap_or(false))?)
            }
            _ => Err(ApiError::invalid_field("prompt", "set exactly one of `prompt` and `messages`")),
        }
    });
    let tokens = tokens.await?;
    let context = app.text_pipeline.limits.context;
    Ok(Json(json!({"tokens": tokens, "count": tokens.len(), "max_model_len": context})).into_response())
}

pub(super) async fn detokenize(
    State(app): State<Arc<AppState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let request: DetokenizeRequest = parse_strict(read_object(request, app.settings.max_body_bytes).await?)?;
    let vocabulary = app.text_pipeline.limits.vocabulary;
    let is_unknown = |id: &&u32| vocabulary.is_some_and(|vocabulary| **id as usize >= vocabulary);
    if let Some(id) = request.tokens.iter().find(is_unknown) {
        return Err(ApiError::invalid_field("tokens", format!("the model has no token {id}")));
    }
    let text = run_blocking(&app, move |app| Ok(app.text_pipeline.tokenizer.decode(&request.tokens))).await?;
    Ok(Json(json!({"prompt": text})).into_response())
}
