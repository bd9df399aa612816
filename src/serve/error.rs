//! [`ApiError`]: the error object of the OpenAI API, and the status it is sent with.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::engine::{Failure, Rejection};
use super::guide::GuideError;
use crate::generate;

/// Why a request fails, or its stream breaks off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    message: String,
    /// The field of the request at fault.
    param: Option<String>,
    code: Option<&'static str>,
    /// `Retry-After` in seconds.
    retry_after: Option<u32>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), param: None, code: None, retry_after: None }
    }

    /// The request is invalid.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// A field of the request is invalid.
    pub(super) fn invalid_field(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::invalid(message) }
    }

    /// The prompt in field `param` is invalid for the model.
    pub(super) fn prompt(param: &str, error: generate::Error) -> Self {
        match error {
            generate::Error::Prompt(error) => {
                let code = error.exceeds_context().then_some("context_length_exceeded");
                Self { code, ..Self::invalid_field(param, error.to_string()) }
            }
            error => error.into(),
        }
    }

    /// The body exceeds the size limit.
    pub(super) fn body_too_large(limit: usize) -> Self {
        let message = format!("the request body exceeds {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message)
    }

    /// The body did not arrive in time.
    pub(super) fn body_timeout() -> Self {
        let message = "the request body did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
    }

    /// No model has this name.
    pub(super) fn model_not_found(name: &str, ids: &[&str]) -> Self {
        let message = format!("unknown model `{name}`; available: `{}`", ids.join("`, `"));
        let error = Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message);
        Self { param: Some("model".to_owned()), code: Some("model_not_found"), ..error }
    }

    /// No route has this path.
    pub(super) fn unknown_route(method: &str, path: &str) -> Self {
        let message = format!("unknown route {method} {path}");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    /// The route does not support the method.
    pub(super) fn method_not_allowed(method: &str, path: &str) -> Self {
        let message = format!("{path} does not support {method}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message)
    }

    /// The API key is missing or wrong.
    pub(super) fn unauthorized() -> Self {
        let message =
            "missing or invalid API key; send `Authorization: Bearer KEY`, or the key as Basic password";
        let error = Self::new(StatusCode::UNAUTHORIZED, "authentication_error", message);
        Self { code: Some("invalid_api_key"), ..error }
    }

    /// The models are still loading.
    pub(super) fn loading(phase: &str) -> Self {
        let message = format!("the model is not ready: {phase}");
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable_error", message);
        Self { code: Some("loading"), retry_after: Some(1), ..error }
    }

    /// The server is shutting down.
    pub(super) fn shutting_down() -> Self {
        let message = "the server is shutting down";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable_error", message);
        Self { code: Some("shutting_down"), retry_after: Some(5), ..error }
    }

    /// The server failed.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// `{"error": {…}}`.
    pub(super) fn body(&self) -> Value {
        let Self { kind, message, param, code, .. } = self;
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
    }

    /// A response with this error's status and headers, and a body of its own.
    pub(super) fn with_body(&self, body: Value) -> Response {
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"mlxcel\""));
        }
        response
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        match failure {
            Failure::TimedOut => {
                let error = Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout_error", message);
                Self { code: Some("request_timeout"), ..error }
            }
            Failure::ShuttingDown => Self::shutting_down(),
            Failure::Generation(_) | Failure::Guide(_) => Self::internal(message),
        }
    }
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let message = rejection.to_string();
        match rejection {
            Rejection::QueueFull => {
                let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
                Self { code: Some("queue_full"), retry_after: Some(1), ..error }
            }
            Rejection::TooManyAnswers { .. } => Self::invalid(message),
            Rejection::Stopped => Self::shutting_down(),
        }
    }
}

impl From<GuideError> for ApiError {
    fn from(error: GuideError) -> Self {
        Self::invalid_field("response_format", error.to_string())
    }
}

impl From<generate::Error> for ApiError {
    fn from(error: generate::Error) -> Self {
        match error {
            generate::Error::Template { reason, .. } => {
                Self::invalid_field("messages", format!("the chat template rejects these messages: {reason}"))
            }
            generate::Error::Prompt(error) => Self::invalid(error.to_string()),
            generate::Error::File { .. } | generate::Error::Logits(_) | generate::Error::Mlx(_) => {
                Self::internal(error.to_string())
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.with_body(self.body())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_fields_of_the_openai_api() {
        let error = ApiError::model_not_found("gpt", &["tales", "tales@base"]);
        assert_eq!(error.status, StatusCode::NOT_FOUND);
        let message = "unknown model `gpt`; available: `tales`, `tales@base`";
        assert_eq!(
            error.body(),
            json!({"error": {"message": message, "type": "invalid_request_error", "param": "model",
                "code": "model_not_found"}})
        );
    }

    #[test]
    fn a_full_queue_sends_retry_after() {
        let response = ApiError::from(Rejection::QueueFull).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }
}
