//! From bytes to a type, or to an error that names the field.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::serve::error::ApiError;

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// The JSON object in a body of at most `limit` bytes.
pub(in crate::serve) async fn object(
    request: Request<Body>,
    limit: usize,
) -> Result<Map<String, Value>, ApiError> {
    // Anything else could be sent by any page in a browser without asking first.
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::invalid("the body must be JSON, with `Content-Type: application/json`"));
    }
    let bytes = match tokio::time::timeout(PATIENCE, to_bytes(request.into_body(), limit)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if is_too_large(&error) => return Err(ApiError::too_large(limit)),
        Ok(Err(error)) => return Err(ApiError::invalid(format!("the body cannot be read: {error}"))),
        Err(_) => return Err(ApiError::too_slow()),
    };
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(ApiError::invalid("the body is not a JSON object")),
        Err(error) => Err(ApiError::invalid(format!("the body is not valid JSON: {error}"))),
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

/// A request of a type that knows all its fields.
pub(in crate::serve) fn strict<T: DeserializeOwned>(object: Map<String, Value>) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(Value::Object(object)).map_err(|error| {
        let path = error.path().to_string();
        let message = error.into_inner().to_string();
        let named = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
        if let Some(rest) = message.strip_prefix("unknown field ") {
            let field = named(rest);
            let mut known = rest.split('`').skip(3).step_by(2);
            let near = known.find(|name| strsim::jaro_winkler(name, &field) > 0.85);
            let help = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return ApiError::field(&field, format!("unknown field `{field}`{help}"));
        }
        if message.starts_with("missing field ") {
            let field = named(&message);
            return ApiError::field(&field, format!("`{field}` is missing"));
        }
        ApiError::field(&path, format!("`{path}`: {message}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only refusals are looked at")]
    struct Asked {
        temperature: Option<f32>,
        messages: Vec<String>,
    }

    #[track_caller]
    fn check_refused(value: &Value, param: &str, message: &str) {
        let error = strict::<Asked>(value.as_object().unwrap().clone()).unwrap_err();
        assert_eq!(error, ApiError::field(param, message));
    }

    #[test]
    fn what_is_wrong_is_named() {
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
