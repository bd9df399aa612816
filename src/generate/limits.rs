//! [`Limits`]: what a model can take, so that a prompt is refused before anything is computed.

use serde_json::{Map, Value};

use super::{Error, MAX_TOKENS};

/// What a model can take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Token ids below this.
    pub vocabulary: Option<usize>,
    /// So many positions, prompt and answer together.
    pub context: Option<usize>,
}

impl Limits {
    /// What `config.json` says, at its root or of its text model.
    #[must_use]
    pub fn of_config(config: &Map<String, Value>) -> Self {
        let text = config.get("text_config").and_then(Value::as_object);
        let field = |name| {
            let value = text.and_then(|text| text.get(name)).or(config.get(name))?.as_u64()?;
            usize::try_from(value).ok().filter(|value| *value > 0)
        };
        Self { vocabulary: field("vocab_size"), context: field("max_position_embeddings") }
    }

    /// Checks the tokens of a prompt, or of a text to score.
    ///
    /// # Errors
    /// When there is none, one that the model does not know, or more than it has positions for.
    pub fn check(&self, tokens: &[u32]) -> Result<(), Error> {
        if tokens.is_empty() {
            return Err(Error::prompt("there is nothing to start from: the text has no token").or_help(
                "give at least a word, or a model whose tokenizer begins texts with a token of its own",
            ));
        }
        if let Some(vocabulary) = self.vocabulary
            && let Some((at, id)) = tokens.iter().enumerate().find(|(_, id)| **id as usize >= vocabulary)
        {
            let reason = format!("token {id} (at position {at}) is not one of the model's {vocabulary}");
            return Err(
                Error::prompt(reason).or_help("the tokenizer, or `--tokens`, belongs to another model")
            );
        }
        match self.context {
            Some(context) if tokens.len() > context => {
                let reason =
                    format!("{} tokens are more than the model's context of {context}", tokens.len());
                Err(Error::prompt(reason).or_help("shorten the text"))
            }
            _ => Ok(()),
        }
    }

    /// How many tokens may be generated after a prompt of `prompt` tokens: what was asked for, or else what is usual,
    /// which gives way to the context.
    ///
    /// # Errors
    /// When nothing fits behind the prompt, or less than was asked for.
    pub fn max_tokens(
        &self,
        prompt: usize,
        asked: Option<usize>,
        usual: Option<usize>,
    ) -> Result<usize, Error> {
        let wanted = asked.or(usual).unwrap_or(MAX_TOKENS);
        let Some(room) = self.context.map(|context| context.saturating_sub(prompt)) else {
            return Ok(wanted);
        };
        let context = room + prompt;
        if room == 0 && wanted > 0 {
            let reason = format!("the prompt's {prompt} tokens fill the model's context of {context}");
            return Err(Error::prompt(reason).or_help("shorten the prompt"));
        }
        if asked.is_some() && wanted > room {
            let reason = format!(
                "{prompt} tokens of prompt and {wanted} to generate exceed the model's context of {context}"
            );
            return Err(Error::prompt(reason).or_help(&format!("`--max-tokens {room}` is what fits")));
        }
        Ok(wanted.min(room))
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
    fn limits_stand_in_the_configuration() {
        let config = json!({"vocab_size": 10, "text_config": {"max_position_embeddings": 8}});
        assert_eq!(Limits::of_config(config.as_object().unwrap()), LIMITS);
        assert_eq!(Limits::of_config(&Map::new()), Limits::default());
    }

    #[test]
    fn prompts_that_the_model_cannot_take_are_refused() {
        check_refused(LIMITS.check(&[]), "there is nothing to start from: the text has no token");
        check_refused(LIMITS.check(&[1, 10]), "token 10 (at position 1) is not one of the model's 10");
        check_refused(LIMITS.check(&[1; 9]), "9 tokens are more than the model's context of 8");
        assert!(LIMITS.check(&[9; 8]).is_ok());
        assert!(Limits::default().check(&[u32::MAX; 99]).is_ok());
    }

    #[test]
    fn what_was_asked_for_must_fit_and_what_is_usual_gives_way() {
        assert_eq!(LIMITS.max_tokens(5, Some(3), None).unwrap(), 3);
        check_refused(
            LIMITS.max_tokens(5, Some(4), None),
            "5 tokens of prompt and 4 to generate exceed the model's context of 8",
        );
        assert_eq!(LIMITS.max_tokens(5, None, None).unwrap(), 3);
        assert_eq!(LIMITS.max_tokens(5, None, Some(2)).unwrap(), 2);
        assert_eq!(Limits::default().max_tokens(5, None, None).unwrap(), MAX_TOKENS);
        check_refused(
            LIMITS.max_tokens(8, None, None),
            "the prompt's 8 tokens fill the model's context of 8",
        );
    }
}
