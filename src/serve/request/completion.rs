//! [`CompletionRequest`]: what `/v1/completions` takes beside the common fields.

use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::chat::ALTERNATIVES;
use super::common::refuse_unless;
use crate::serve::error::ApiError;

/// Fields of a completion request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct CompletionRequest {
    /// What to continue: a text, several, the token ids of one, or of several.
    pub(in crate::serve) prompt: Prompt,
    /// Whether the answer begins with the prompt.
    echo: Option<bool>,
    /// Whether to tell log-probabilities, with so many alternatives; with `echo` those of the prompt too.
    #[schema(maximum = 20)]
    logprobs: Option<usize>,
    // Known, and not supported.
    #[schema(value_type = Option<String>)]
    suffix: Option<Value>,
    #[schema(value_type = Option<usize>)]
    best_of: Option<Value>,
}

/// `prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected a text, a list of texts, a list of token ids, or a list of such lists"
)]
pub(in crate::serve) enum Prompt {
    Text(String),
    Tokens(Vec<u32>),
    Texts(Vec<String>),
    TokenLists(Vec<Vec<u32>>),
}

impl CompletionRequest {
    /// Whether the answer begins with the prompt.
    pub(in crate::serve) fn echo(&self) -> bool {
        self.echo.unwrap_or(false)
    }

    /// Whether log-probabilities are wanted, and with how many alternatives.
    pub(in crate::serve) fn logprobs(&self) -> Result<Option<usize>, ApiError> {
        match self.logprobs {
            Some(count) if count > ALTERNATIVES => {
                let message = format!("`logprobs` is {count}, not a number from 0 to {ALTERNATIVES}");
                Err(ApiError::field("logprobs", message))
            }
            count => Ok(count),
        }
    }

    /// Refuses what is known but cannot be done.
    pub(in crate::serve) fn check(&self, n: usize) -> Result<(), ApiError> {
        refuse_unless("suffix", self.suffix.as_ref(), &[json!("")])?;
        refuse_unless("best_of", self.best_of.as_ref(), &[json!(n), json!(1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(value: Value) -> Result<CompletionRequest, ApiError> {
        let Value::Object(object) = value else { panic!("not an object") };
        super::super::strict(object)
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
    fn what_cannot_be_done_is_named_where_it_matters() {
        let check = |field: &str, value: Value| {
            let mut object = json!({"prompt": "a"});
            object[field] = value;
            request(object).and_then(|request| request.logprobs().and(request.check(2)))
        };
        for (field, value) in [("suffix", json!("x")), ("best_of", json!(3)), ("logprobs", json!(21))] {
            assert_eq!(check(field, value).unwrap_err().body()["error"]["param"], field);
        }
        for (field, value) in [("suffix", json!("")), ("best_of", json!(2)), ("logprobs", json!(0))] {
            assert_eq!(check(field, value), Ok(()));
        }
    }
}
