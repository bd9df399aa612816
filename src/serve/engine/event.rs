//! [`Event`]: what a handler receives from the engine.

use std::sync::Arc;

use super::logprob::TokenLogprob;
use crate::generate::{self, FinishReason};
use crate::serve::guide::GuideError;

/// An event of a job. The channel closes after the end of the last answer, or after a failure.
#[derive(Debug)]
pub(in crate::serve) enum Event {
    /// A prompt was prefilled.
    PromptRead {
        /// Index of the prompt within its request.
        prompt_index: usize,
        /// Tokens taken from the prompt cache.
        cached: usize,
        /// Each token's log-probability if requested; `None` for the first token.
        logprobs: Vec<Option<TokenLogprob>>,
    },
    /// An answer continues.
    Token(TokenDelta),
    /// The request failed; no further events follow.
    Failed(Failure),
}

/// One token of an answer and the text that it completes.
#[derive(Debug)]
pub(in crate::serve) struct TokenDelta {
    /// Index of the choice within the response.
    pub(in crate::serve) choice: usize,
    /// The token; `None` if no token was requested.
    pub(in crate::serve) token: Option<u32>,
    /// Text that is complete now.
    pub(in crate::serve) text: String,
    /// The token's log-probability if requested; end-of-text tokens have none.
    pub(in crate::serve) logprob: Option<TokenLogprob>,
    /// Set on the last event of the answer.
    pub(in crate::serve) finish: Option<FinishReason>,
}

/// Why a request failed in the engine.
#[derive(Debug, Clone, thiserror::Error)]
pub(in crate::serve) enum Failure {
    /// `--request-timeout` has passed.
    #[error("the request exceeded the server's time limit")]
    TimedOut,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The model or the sampler failed; one failed step ends all its answers, which share the error.
    #[error(transparent)]
    Generation(Arc<generate::Error>),
    /// The answer can no longer follow its schema.
    #[error(transparent)]
    Guide(#[from] GuideError),
}

impl From<generate::Error> for Failure {
    fn from(error: generate::Error) -> Self {
        Self::Generation(Arc::new(error))
    }
}
