//! [`CompletionRequest`]: the fields of `/v1/completions` beside the common ones.

use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::unsupported::{MAX_TOP_LOGPROBS, reject_unless_inert};
use crate::serve::error::ApiError;

/// Fields of a completion request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct CompletionRequest {
    /// Text to continue: a string, a list of strings, a list of token ids, or a list of such lists.
    pub(in crate::serve) prompt: Prompt,
    /// Prepends the prompt to the answer.
    echo: Option<bool>,
    /// Returns log-probabilities with this many alternatives per token; with `echo` also those of the prompt.
    #[schema(maximum = 20)]
    logprobs: Option<usize>,
    // Not supported.
    #[schema(value_type = Option<String>)]
    suffix: Option<Value>,
    #[schema(value_type = Option<usize>)]
    best_of: Option<Value>,
}

/// `prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected a string, a list of strings, a list of token ids, or a list of such lists"
)]
pub(in crate::serve) enum Prompt {
    Text(String),
    Tokens(Vec<u32>),
    Texts(Vec<String>),
    TokenLists(Vec<Vec<u32>>),
}

impl CompletionRequest {
    /// Whether the prompt is prepended to the answer.
    pub(in crate::serve) fn echo(&self) -> bool {
        self.echo.unwrap_or(false)
    }

    /// The number of alternatives per token if log-probabilities are requested.
    pub(in crate::serve) fn logprobs(&self) -> Result<Option<usize>, ApiError> {
        match self.logprobs {
            Some(count) if count > MAX_TOP_LOGPROBS => {
                let message = format!("`logprobs` is {count}; it must be from 0 to {MAX_TOP_LOGPROBS}");
                Err(ApiError::invalid_field("logprobs", message))
            }
            count => Ok(count),
        }
    }

    /// Rejects unsupported fields.
    pub(in crate::serve) fn check_unsupported(&self, n: usize) -> Result<(), ApiError> {
        reject_unless_inert("suffix", self.suffix.as_ref(), &[json!("")])?;
        reject_unless_inert("best_of", self.best_of.as_ref(), &[json!(n), json!(1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(value: Value) -> Result<CompletionRequest, ApiError> {
        let Value::Object(object) = value else { panic!("not an object") };
        super::super::parse_strict(object)
    }

    #[test]
    fn a_prompt_has_four_forms() {
        let prompt = |value: Value| request(json!({"prompt": value})).map(|request| request.prompt);
        assert_eq!(prompt(json!("a")), Ok(Prompt::Text("a".to_owned())));
        assert_eq!(prompt(json!(["a", "b"])), Ok(Prompt::Texts(vec!["a".to_owned(), "b".to_owned()])));
        assert_eq!(prompt(json!([1, 2])), Ok(Prompt::Tokens(vec![1, 2])));
        assert_eq!(prompt(json!([[1], [2]])), Ok(Prompt::TokenLists(vec![vec![1], vec![2]])));
        assert_eq!(prompt(json!([1, -2])).unwrap_err().body()["error"]["param"], "prompt");
        assert_eq!(prompt(json!(null)).unwrap_err().body()["error"]["param"], "prompt");
    }

    #[test]
    fn unsupported_fields_are_rejected_unless_inert() {
        let check = |field: &str, value: Value| {
            let mut object = json!({"prompt": "a"});
            object[field] = value;
            request(object).and_then(|request| request.logprobs().and(request.check_unsupported(2)))
        };
        for (field, value) in [("suffix", json!("x")), ("best_of", json!(3)), ("logprobs", json!(21))] {
            assert_eq!(check(field, value).unwrap_err().body()["error"]["param"], field);
        }
        for (field, value) in [("suffix", json!("")), ("best_of", json!(2)), ("logprobs", json!(0))] {
            assert_eq!(check(field, value), Ok(()));
        }
    }
}
