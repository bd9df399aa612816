//! `/v1/chat/completions` and `/v1/completions`: parse, lower, submit, respond.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Map, Value};

use super::listen::Client;
use super::run_blocking::run_blocking;
use super::{headers, sse};
use crate::serve::app_state::AppState;
use crate::serve::error::ApiError;
use crate::serve::lower_request::{LoweredRequest, lower_chat, lower_completion};
use crate::serve::request::read_object;
use crate::serve::submit::submit;

pub(super) async fn chat(
    State(app): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    respond(app, client, request, lower_chat).await
}

pub(super) async fn completion(
    State(app): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    respond(app, client, request, lower_completion).await
}

async fn respond(
    app: Arc<AppState>,
    client: Client,
    request: Request<Body>,
    lower: fn(&AppState, Map<String, Value>) -> Result<LoweredRequest, ApiError>,
) -> Result<Response, ApiError> {
    app.models()?;
    let object = read_object(request, app.settings.max_body_bytes).await?;
    let lowered = run_blocking(&app, move |app| lower(app, object)).await?;
    let (model, stream, include_usage) = (lowered.model, lowered.stream, lowered.include_usage);
    let (builder, events) = submit(&app, lowered, &client.0)?;
    let mut response = if stream {
        sse::response(builder, events, include_usage)
    } else {
        Json(builder.collect(events).await?).into_response()
    };
    if let Some(identity) = app.models().ok().and_then(|models| models.get(model)) {
        headers::set_surgery(&mut response, &identity.surgery);
    }
    Ok(response)
}
