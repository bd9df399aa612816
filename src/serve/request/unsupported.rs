//! Fields that are known but not supported, and bounds that several requests share.

use serde_json::Value;

use crate::serve::error::ApiError;

/// Maximum number of alternatives per token in log-probabilities.
pub(super) const MAX_TOP_LOGPROBS: usize = 20;

/// Rejects a field that is known but not supported, unless its value is null or one of `inert`, which have no effect.
pub(super) fn reject_unless_inert(
    param: &str,
    value: Option<&Value>,
    inert: &[Value],
) -> Result<(), ApiError> {
    match value {
        Some(value) if !value.is_null() && !inert.contains(value) => {
            Err(ApiError::invalid_field(param, format!("`{param}` does not support this value")))
        }
        _ => Ok(()),
    }
}
