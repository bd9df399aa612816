//! Parses request bodies; errors name the field.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::diagnostic::nearest;
use crate::serve::error::ApiError;

/// Time limit for a body to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a body of at most `limit` bytes as a JSON object.
pub(in crate::serve) async fn read_object(
    request: Request<Body>,
    limit: usize,
) -> Result<Map<String, Value>, ApiError> {
    // Browsers send other content types to any site without a CORS preflight.
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::invalid("the request body must be JSON with `Content-Type: application/json`"));
    }
    let bytes = match tokio::time::timeout(BODY_TIMEOUT, to_bytes(request.into_body(), limit)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if is_too_large(&error) => return Err(ApiError::body_too_large(limit)),
        Ok(Err(error)) => return Err(ApiError::invalid(format!("cannot read the request body: {error}"))),
        Err(_) => return Err(ApiError::body_timeout()),
    };
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(ApiError::invalid("the request body is not a JSON object")),
        Err(error) => Err(ApiError::invalid(format!("the request body is not valid JSON: {error}"))),
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Deserializes a request whose type denies unknown fields.
pub(in crate::serve) fn parse_strict<T: DeserializeOwned>(object: Map<String, Value>) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(Value::Object(object)).map_err(|error| {
        let path = error.path().to_string();
        let message = error.into_inner().to_string();
        let named = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
        if let Some(rest) = message.strip_prefix("unknown field ") {
            let field = named(rest);
            let similar = nearest(&field, rest.split('`').skip(3).step_by(2));
            let help = similar.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            return ApiError::invalid_field(&field, format!("unknown field `{field}`{help}"));
        }
        if message.starts_with("missing field ") {
            let field = named(&message);
            return ApiError::invalid_field(&field, format!("`{field}` is missing"));
        }
        ApiError::invalid_field(&path, format!("`{path}`: {message}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are tested")]
    struct Sample {
        temperature: Option<f32>,
        messages: Vec<String>,
    }

    #[track_caller]
    fn check_refused(value: &Value, param: &str, message: &str) {
        let error = parse_strict::<Sample>(value.as_object().unwrap().clone()).unwrap_err();
        assert_eq!(error, ApiError::invalid_field(param, message));
    }

    #[test]
    fn errors_name_the_field() {
        check_refused(
            &json!({"messages": [], "temprature": 1}),
            "temprature",
            "unknown field `temprature`; did you mean `temperature`?",
        );
        check_refused(&json!({"messages": [], "zzz": 1}), "zzz", "unknown field `zzz`");
        check_refused(&json!({}), "messages", "`messages` is missing");
        check_refused(
            &json!({"messages": ["a", 2]}),
            "messages[1]",
            "`messages[1]`: invalid type: integer `2`, expected a string",
        );
    }
}
