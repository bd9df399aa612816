//! Routes, and what stands before them: the log, origins, keys.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Path, State};
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde_json::{Map, Value, json};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use super::app::App;
use super::error::ApiError;
use super::listen::Client;
use super::prepare::{self, Prepared};
use super::reply::{reply, token};
use super::request::{DetokenizeRequest, TokenizeRequest, object, strict};
use super::{openapi, page};
use crate::generate::Extra;

/// The header that tells which surgery answers.
pub(super) const MARK: HeaderName = HeaderName::from_static("x-mlxcel-surgery");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Everything that is answered.
pub(super) fn router(app: &Arc<App>) -> Router {
    let routes = Router::new()
        .route("/", get(page::page))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(openapi::document))
        .route("/v1/models", get(models))
        .route("/v1/models/{id}", get(model))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completion))
        .route("/tokenize", post(tokenize))
        .route("/detokenize", post(detokenize))
        .fallback(async |method: Method, uri: Uri| ApiError::no_route(method.as_str(), uri.path()))
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            ApiError::no_method(method.as_str(), uri.path())
        })
        .with_state(Arc::clone(app));
    // The last layer is the first to see a request.
    routes
        .layer(from_fn_with_state(Arc::clone(app), only_with_key))
        .layer(cors(&app.settings.origins))
        .layer(from_fn_with_state(Arc::clone(app), noted))
}

/// Lets the pages of these origins ask.
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
        .expose_headers([MARK, REQUEST_ID, header::RETRY_AFTER])
}

/// Everything but `/health` needs a key, where there are keys.
async fn only_with_key(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    if request.uri().path() == "/health" || app.settings.keys.admit(request.headers()) {
        return next.run(request).await;
    }
    ApiError::no_key().into_response()
}

/// Every answer is counted and logged, and tells which surgery it is of.
async fn noted(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    let begin = Instant::now();
    let id = format!("req-{}", token());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let client = request.extensions().get::<Client>().map(|client| client.0.clone()).unwrap_or_default();
    let mut response = next.run(request).await;
    let status = response.status().as_u16();
    // Only routes that exist are named: what else is asked for is anybody's text.
    let route = route.as_deref().unwrap_or("none");
    app.metrics.answered(route, status);
    let milliseconds = begin.elapsed().as_millis();
    tracing::info!(id, client, %method, route, status, milliseconds, "request");
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    if let Ok(mark) = HeaderValue::from_str(app.surgery.mark()) {
        headers.entry(MARK).or_insert(mark);
    }
    response
}

async fn health(State(app): State<Arc<App>>) -> Response {
    let surgery = app.surgery.health();
    if app.is_ending() {
        return ApiError::ending().into_response();
    }
    match app.phase() {
        None => Json(json!({"status": "ok", "surgery": surgery})).into_response(),
        Some(phase) => {
            let error = ApiError::loading(&phase);
            let mut body = json!({"status": "loading", "phase": phase, "surgery": surgery});
            body["error"] = error.body()["error"].take();
            (error.status, [(header::RETRY_AFTER, "1")], Json(body)).into_response()
        }
    }
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.text()).into_response()
}

async fn models(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let data: Vec<Value> = app.models()?.iter().map(|model| entry(&app, model)).collect();
    Ok(Json(json!({"object": "list", "data": data})).into_response())
}

async fn model(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let (_, model) = app.model(Some(&id))?;
    let mut response = Json(entry(&app, model)).into_response();
    if let Ok(mark) = HeaderValue::from_str(model.surgery.mark()) {
        response.headers_mut().insert(MARK, mark);
    }
    Ok(response)
}

fn entry(app: &App, model: &super::Identity) -> Value {
    json!({
        "id": model.id,
        "object": "model",
        "created": app.started,
        "owned_by": "mlxcel",
        "meta": model.meta,
    })
}

async fn chat(
    State(app): State<Arc<App>>,
    Extension(client): Extension<Client>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    answer(app, client, request, prepare::chat).await
}

async fn completion(
    State(app): State<Arc<App>>,
    Extension(client): Extension<Client>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    answer(app, client, request, prepare::completion).await
}

async fn answer(
    app: Arc<App>,
    client: Client,
    request: Request<Body>,
    prepare: fn(&App, Map<String, Value>) -> Result<Prepared, ApiError>,
) -> Result<Response, ApiError> {
    app.models()?;
    let object = object(request, app.settings.body_limit).await?;
    let prepared = aside(&app, move |app| prepare(app, object)).await?;
    reply(app, prepared, client.0).await
}

async fn tokenize(State(app): State<Arc<App>>, request: Request<Body>) -> Result<Response, ApiError> {
    let request: TokenizeRequest = strict(object(request, app.settings.body_limit).await?)?;
    let tokens = aside(&app, move |app| {
        let tokenizer = &app.texts.tokenizer;
        let tokens = match (request.prompt, request.messages) {
            (Some(text), None) => tokenizer.encode(&text, request.add_special_tokens.unwrap_or(true))?,
            (None, Some(messages)) => {
                let text = app.texts.template()?.render(&messages, &Extra::default())?;
                tokenizer.encode(&text, request.add_special_tokens.unwrap_or(false))?
            }
            _ => return Err(ApiError::field("prompt", "either `prompt` or `messages` is needed")),
        };
        Ok(tokens)
    });
    let tokens = tokens.await?;
    let context = app.texts.limits.context;
    Ok(Json(json!({"tokens": tokens, "count": tokens.len(), "max_model_len": context})).into_response())
}

async fn detokenize(State(app): State<Arc<App>>, request: Request<Body>) -> Result<Response, ApiError> {
    let request: DetokenizeRequest = strict(object(request, app.settings.body_limit).await?)?;
    let unknown = |id: &&u32| app.texts.limits.vocabulary.is_some_and(|count| **id as usize >= count);
    if let Some(id) = request.tokens.iter().find(unknown) {
        return Err(ApiError::field("tokens", format!("the model has no token {id}")));
    }
    let text = aside(&app, move |app| Ok(app.texts.tokenizer.decode(&request.tokens))).await?;
    Ok(Json(json!({"prompt": text})).into_response())
}

/// Work that takes its time goes to a thread that may wait.
async fn aside<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let app = Arc::clone(app);
    tokio::task::spawn_blocking(move || work(&app))
        .await
        .unwrap_or_else(|_| Err(ApiError::broken("the request cannot be prepared")))
}
