//! The routes and their middleware: access log, CORS, API keys.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Request, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use super::access_log::access_log;
use super::{completions, headers, models, page, status, tokens};
use crate::serve::app_state::AppState;
use crate::serve::error::ApiError;
use crate::serve::openapi;

/// All routes.
pub(in crate::serve) fn router(app: &Arc<AppState>) -> Router {
    let routes = Router::new()
        .route("/", get(page::page))
        .route("/health", get(status::health))
        .route("/metrics", get(status::metrics))
        .route("/openapi.json", get(openapi::document))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{id}", get(models::get))
        .route("/v1/chat/completions", post(completions::chat))
        .route("/v1/completions", post(completions::completion))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .fallback(async |method: Method, uri: Uri| ApiError::unknown_route(method.as_str(), uri.path()))
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            ApiError::method_not_allowed(method.as_str(), uri.path())
        })
        .with_state(Arc::clone(app));
    // The last layer sees a request first.
    routes
        .layer(from_fn_with_state(Arc::clone(app), require_api_key))
        .layer(cors(&app.settings.cors_origins))
        .layer(from_fn_with_state(Arc::clone(app), access_log))
}

/// Allows cross-origin requests from these origins.
fn cors(origins: &[String]) -> CorsLayer {
    if origins.is_empty() {
        return CorsLayer::new();
    }
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| origin.parse().ok()))
    };
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(Any)
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE])
        .expose_headers([headers::SURGERY, headers::REQUEST_ID, header::RETRY_AFTER])
}

/// Middleware that rejects requests without an accepted API key, except those for `/health`.
async fn require_api_key(State(app): State<Arc<AppState>>, request: Request<Body>, next: Next) -> Response {
    if request.uri().path() == "/health" || app.settings.api_keys.accepts(request.headers()) {
        return next.run(request).await;
    }
    ApiError::unauthorized().into_response()
}
