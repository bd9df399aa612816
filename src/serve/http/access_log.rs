//! The access log: logs and counts every request, and gives its response an id.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, State};
use axum::http::{HeaderValue, Request};
use axum::middleware::Next;
use axum::response::Response;

use super::headers;
use super::listen::Client;
use crate::serve::app_state::AppState;
use crate::serve::random_id::random_id;

/// Middleware that logs and counts a request, and identifies it and its weights in the response.
pub(super) async fn access_log(
    State(app): State<Arc<AppState>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let begin = Instant::now();
    let id = format!("req-{}", random_id());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let client = request.extensions().get::<Client>().map(|client| client.0.clone()).unwrap_or_default();
    let mut response = next.run(request).await;
    let status = response.status().as_u16();
    // Unknown paths are arbitrary text and would give each its own metric.
    let route = route.as_deref().unwrap_or("none");
    app.metrics.count_request(route, status);
    let milliseconds = begin.elapsed().as_millis();
    tracing::info!(id, client, %method, route, status, milliseconds, "request");
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(headers::REQUEST_ID, id);
    }
    headers::set_surgery(&mut response, &app.surgery);
    response
}
