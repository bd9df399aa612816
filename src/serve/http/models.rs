//! `/v1/models`: the served models.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::headers;
use crate::serve::ModelIdentity;
use crate::serve::app_state::AppState;
use crate::serve::error::ApiError;

pub(super) async fn list(State(app): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let data: Vec<Value> = app.models()?.iter().map(|model| entry(&app, model)).collect();
    Ok(Json(json!({"object": "list", "data": data})).into_response())
}

pub(super) async fn get(
    State(app): State<Arc<AppState>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let (_, model) = app.model(Some(&id))?;
    let mut response = Json(entry(&app, model)).into_response();
    headers::set_surgery(&mut response, &model.surgery);
    Ok(response)
}

fn entry(app: &AppState, model: &ModelIdentity) -> Value {
    json!({
        "id": model.id,
        "object": "model",
        "created": app.started_unix,
        "owned_by": "mlxcel",
        "meta": model.meta,
    })
}
