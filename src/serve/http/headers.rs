//! Response headers of our own.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

use crate::serve::SurgeryInfo;

/// Identifies the surgery on the weights that answered.
pub(super) const SURGERY: HeaderName = HeaderName::from_static("x-mlxcel-surgery");
/// Identifies the request in the log.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Sets the surgery header unless it is set: the handler of a model knows better than the access log.
pub(super) fn set_surgery(response: &mut Response, surgery: &SurgeryInfo) {
    if let Ok(value) = HeaderValue::from_str(surgery.header_value()) {
        response.headers_mut().entry(SURGERY).or_insert(value);
    }
}
