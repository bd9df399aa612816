//! [`Limits`]: the limits of a model, so that a prompt is rejected before anything is computed.

use serde_json::{Map, Value};

use super::config::DEFAULT_MAX_TOKENS;
use super::error::{Error, PromptError};
use crate::checkpoint::TextConfig;

/// The limits of a model; `None` means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Number of tokens in the vocabulary.
    pub vocabulary: Option<usize>,
    /// Context length: maximum positions of prompt and answer together.
    pub context: Option<usize>,
}

impl Limits {
    /// The limits in `config.json`, in its text model or else its root.
    #[must_use]
    pub(crate) fn of_config(config: &Map<String, Value>) -> Self {
        let text = TextConfig::of(config);
        let field = |name| {
            let value = text.get(name)?.as_u64()?;
            usize::try_from(value).ok().filter(|value| *value > 0)
        };
        Self { vocabulary: field("vocab_size"), context: field("max_position_embeddings") }
    }

    /// Checks the tokens of a prompt, or of a text to score.
    ///
    /// # Errors
    /// When it is empty, contains an unknown token, or exceeds the context.
    pub(crate) fn check(&self, tokens: &[u32]) -> Result<(), Error> {
        if tokens.is_empty() {
            return Err(PromptError::NoTokens.into());
        }
        if let Some(vocabulary) = self.vocabulary
            && let Some((position, &id)) =
                tokens.iter().enumerate().find(|(_, id)| **id as usize >= vocabulary)
        {
            return Err(PromptError::UnknownToken { id, position, vocabulary }.into());
        }
        match self.context {
            Some(context) if tokens.len() > context => {
                Err(PromptError::TooLong { tokens: tokens.len(), context }.into())
            }
            _ => Ok(()),
        }
    }

    /// Maximum number of tokens to generate after a prompt of `prompt` tokens: what was requested, or else the default,
    /// which the context lowers.
    ///
    /// # Errors
    /// When the prompt fills the context, or less room is left than requested.
    pub(crate) fn max_tokens(
        &self,
        prompt: usize,
        requested: Option<usize>,
        default: Option<usize>,
    ) -> Result<usize, Error> {
        let max_tokens = requested.or(default).unwrap_or(DEFAULT_MAX_TOKENS);
        let Some(context) = self.context else { return Ok(max_tokens) };
        let room = context.saturating_sub(prompt);
        if room == 0 && max_tokens > 0 {
            return Err(PromptError::NoRoom { prompt, context }.into());
        }
        if requested.is_some() && max_tokens > room {
            return Err(PromptError::ExceedsContext { prompt, requested: max_tokens, context }.into());
        }
        Ok(max_tokens.min(room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LIMITS: Limits = Limits { vocabulary: Some(10), context: Some(8) };

    #[track_caller]
    fn check_refused<T: std::fmt::Debug>(result: Result<T, Error>, expected: &str) {
        let error = result.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(error.help().is_some());
    }

    #[test]
    fn limits_are_read_from_the_configuration() {
        let config = json!({"vocab_size": 10, "text_config": {"max_position_embeddings": 8}});
        assert_eq!(Limits::of_config(config.as_object().unwrap()), LIMITS);
        assert_eq!(Limits::of_config(&Map::new()), Limits::default());
    }

    #[test]
    fn invalid_prompts_are_rejected() {
        check_refused(LIMITS.check(&[]), "the text has no tokens");
        check_refused(
            LIMITS.check(&[1, 10]),
            "token 10 at position 1 is outside the vocabulary of 10 tokens",
        );
        check_refused(LIMITS.check(&[1; 9]), "the text has 9 tokens; the context is 8");
        assert!(LIMITS.check(&[9; 8]).is_ok());
        assert!(Limits::default().check(&[u32::MAX; 99]).is_ok());
    }

    #[test]
    fn a_request_must_fit_and_the_default_is_lowered() {
        assert_eq!(LIMITS.max_tokens(5, Some(3), None).unwrap(), 3);
        check_refused(
            LIMITS.max_tokens(5, Some(4), None),
            "5 prompt tokens and 4 requested tokens exceed the context of 8",
        );
        assert_eq!(LIMITS.max_tokens(5, None, None).unwrap(), 3);
        assert_eq!(LIMITS.max_tokens(5, None, Some(2)).unwrap(), 2);
        assert_eq!(Limits::default().max_tokens(5, None, None).unwrap(), DEFAULT_MAX_TOKENS);
        check_refused(LIMITS.max_tokens(8, None, None), "the prompt's 8 tokens fill the context of 8");
    }
}
