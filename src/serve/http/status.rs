//! `/health` and `/metrics`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::serve::app_state::AppState;
use crate::serve::error::ApiError;

pub(super) async fn health(State(app): State<Arc<AppState>>) -> Response {
    let surgery = app.surgery.health();
    if app.is_shutting_down() {
        return ApiError::shutting_down().into_response();
    }
    match app.loading_phase() {
        None => Json(json!({"status": "ok", "surgery": surgery})).into_response(),
        Some(phase) => {
            let error = ApiError::loading(&phase);
            let mut body = json!({"status": "loading", "phase": phase, "surgery": surgery});
            body["error"] = error.body()["error"].take();
            error.with_body(body)
        }
    }
}

pub(super) async fn metrics(State(app): State<Arc<AppState>>) -> Response {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], app.metrics.text()).into_response()
}
