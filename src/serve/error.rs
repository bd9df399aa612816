//! [`ApiError`]: OpenAI's error object, and the status it comes with.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::engine::{Failure, Refused};
use crate::generate;

/// Why a request has no answer, or its stream ends before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiError {
    pub(super) status: StatusCode,
    kind: &'static str,
    message: String,
    /// The field of the request that is wrong.
    param: Option<String>,
    code: Option<&'static str>,
    /// Seconds after which to try again.
    retry: Option<u32>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), param: None, code: None, retry: None }
    }

    /// The request is wrong.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// A field of the request is wrong.
    pub(super) fn field(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::invalid(message) }
    }

    /// The prompt does not fit.
    pub(super) fn too_long(param: &str, message: impl Into<String>) -> Self {
        Self { code: Some("context_length_exceeded"), ..Self::field(param, message) }
    }

    /// The body is too large.
    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message)
    }

    /// The body did not arrive in time.
    pub(super) fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", "the body did not arrive in time")
    }

    /// No model of that name.
    pub(super) fn no_model(name: &str, ids: &[&str]) -> Self {
        let message = format!("the model `{name}` does not exist; there is `{}`", ids.join("` and `"));
        let error = Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message);
        Self { param: Some("model".to_owned()), code: Some("model_not_found"), ..error }
    }

    /// Nothing is at that address.
    pub(super) fn no_route(method: &str, path: &str) -> Self {
        let message = format!("there is nothing at {method} {path}");
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    /// Something is at that address, but not for this method.
    pub(super) fn no_method(method: &str, path: &str) -> Self {
        let message = format!("{path} does not answer to {method}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message)
    }

    /// The key is missing or wrong.
    pub(super) fn no_key() -> Self {
        let message =
            "a valid API key is needed: `Authorization: Bearer KEY`, or the key as the password of Basic";
        let error = Self::new(StatusCode::UNAUTHORIZED, "authentication_error", message);
        Self { code: Some("invalid_api_key"), ..error }
    }

    /// Not yet.
    pub(super) fn loading(phase: &str) -> Self {
        let message = format!("the model is not ready: {phase}");
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable_error", message);
        Self { code: Some("loading"), retry: Some(1), ..error }
    }

    /// Not any more.
    pub(super) fn ending() -> Self {
        let message = "the server is shutting down";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable_error", message);
        Self { code: Some("shutting_down"), retry: Some(5), ..error }
    }

    /// The engine is gone without a word.
    pub(super) fn broken(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// `{"error": {…}}`.
    pub(super) fn body(&self) -> Value {
        let Self { kind, message, param, code, .. } = self;
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Late => {
                let message = "the request took longer than the server allows";
                let error = Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout_error", message);
                Self { code: Some("request_timeout"), ..error }
            }
            Failure::Ending => Self::ending(),
            Failure::Broken(message) => Self::broken(message),
        }
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => {
                let message = "too many requests are waiting";
                let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
                Self { code: Some("queue_full"), retry: Some(1), ..error }
            }
            Refused::TooMany { answers, capacity } => Self::invalid(format!(
                "{answers} answers are more than this server takes at once ({capacity})"
            )),
            Refused::Ended => Self::ending(),
        }
    }
}

impl From<generate::Error> for ApiError {
    fn from(error: generate::Error) -> Self {
        match error {
            generate::Error::Template { reason, .. } => {
                Self::field("messages", format!("the chat template cannot take these messages: {reason}"))
            }
            generate::Error::Prompt { reason, .. } => Self::invalid(reason),
            other => Self::broken(other.to_string()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"mlxcel\""));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_four_fields_that_sdks_read() {
        let error = ApiError::no_model("gpt", &["tales", "tales@base"]);
        assert_eq!(error.status, StatusCode::NOT_FOUND);
        let message = "the model `gpt` does not exist; there is `tales` and `tales@base`";
        assert_eq!(
            error.body(),
            json!({"error": {"message": message, "type": "invalid_request_error", "param": "model",
                "code": "model_not_found"}})
        );
    }

    #[test]
    fn a_full_queue_says_when_to_come_back() {
        let response = ApiError::from(Refused::Full).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }
}
