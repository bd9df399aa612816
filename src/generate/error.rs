//! [`Error`]: why a text cannot be generated or scored.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::mlx;

/// Why a text cannot be generated or scored. Every message is a lowercase fragment with names in backticks.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file beside the weights (tokenizer, template, `generation_config.json`) or a text is missing, unreadable or
    /// malformed.
    #[error("`{}`: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// How to fix it.
        help: Option<String>,
    },
    /// The chat template does not compile, or rejects the messages.
    #[error("chat template `{name}`, line {line}: {reason}")]
    Template {
        /// The file that contains the template.
        name: String,
        /// 1-based line of the template.
        line: usize,
        /// The message of the template engine or of the template's own `raise_exception`.
        reason: String,
    },
    /// The prompt is invalid for the model.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The model's logits give no token or no log-probability.
    #[error(transparent)]
    Logits(#[from] LogitsError),
    /// MLX failed.
    #[error(transparent)]
    Mlx(#[from] mlx::Error),
}

/// Why a prompt, or a text to score, is invalid for a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PromptError {
    /// The prompt has no characters.
    #[error("the prompt is empty")]
    Empty,
    /// The text has no tokens.
    #[error("the text has no tokens")]
    NoTokens,
    /// A system message cannot be rendered without a chat template.
    #[error("the model has no chat template, which a system message needs")]
    SystemWithoutTemplate,
    /// A token is outside the vocabulary.
    #[error("token {id} at position {position} is outside the vocabulary of {vocabulary} tokens")]
    UnknownToken {
        /// The token.
        id: u32,
        /// Its position in the text, from 0.
        position: usize,
        /// Number of tokens in the vocabulary.
        vocabulary: usize,
    },
    /// The text alone exceeds the context.
    #[error("the text has {tokens} tokens; the context is {context}")]
    TooLong {
        /// Tokens of the text.
        tokens: usize,
        /// The context length in tokens.
        context: usize,
    },
    /// The prompt leaves no room for an answer.
    #[error("the prompt's {prompt} tokens fill the context of {context}")]
    NoRoom {
        /// Tokens of the prompt.
        prompt: usize,
        /// The context length in tokens.
        context: usize,
    },
    /// The prompt leaves less room than requested.
    #[error("{prompt} prompt tokens and {requested} requested tokens exceed the context of {context}")]
    ExceedsContext {
        /// Tokens of the prompt.
        prompt: usize,
        /// Requested maximum of generated tokens.
        requested: usize,
        /// The context length in tokens.
        context: usize,
    },
}

/// What is wrong with a model's logits.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum LogitsError {
    /// A logit is NaN or +∞.
    #[error("the model's logits are not finite (token {token}: {value})")]
    NotFinite {
        /// Its token id.
        token: usize,
        /// Its value.
        value: f32,
    },
    /// The highest logit is NaN or +∞.
    #[error("the model's logits are not finite (maximum: {0})")]
    MaximumNotFinite(f32),
    /// A log-probability is NaN.
    #[error("the model's logits before position {position} are not finite")]
    NotFiniteBefore {
        /// Position of the token whose log-probability is NaN, from 0.
        position: usize,
    },
    /// All logits are −∞.
    #[error("the model's logits rule out every token")]
    NoCandidate,
    /// There are no logits.
    #[error("the model returned no logits")]
    Missing,
}

impl Error {
    /// How to fix it.
    #[must_use]
    pub(crate) fn help(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::File { help, .. } => help.as_deref().map(Cow::Borrowed),
            Self::Template { .. } => Some("use `--raw` to feed the prompt without a template".into()),
            Self::Prompt(error) => error.help(),
            Self::Logits(_) | Self::Mlx(_) => None,
        }
    }

    pub(super) fn file(path: &Path, reason: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), reason: reason.into(), help: None }
    }

    /// Adds help to a file error that has none.
    pub(super) fn or_help(mut self, text: &str) -> Self {
        if let Self::File { help, .. } = &mut self {
            help.get_or_insert_with(|| text.to_owned());
        }
        self
    }
}

impl PromptError {
    /// How to fix it.
    #[must_use]
    pub(crate) fn help(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Empty => return None,
            Self::NoTokens => "write at least one word".into(),
            Self::SystemWithoutTemplate => {
                "pass a template with `--chat-template`, or write the message into the prompt".into()
            }
            Self::UnknownToken { .. } => {
                "check that the tokenizer, or the ids of `--tokens`, belong to this model".into()
            }
            Self::TooLong { .. } => "shorten the text".into(),
            Self::NoRoom { .. } => "shorten the prompt".into(),
            Self::ExceedsContext { prompt, context, .. } => format!(
                "use `--max-tokens {}` or less, or shorten the prompt",
                context.saturating_sub(*prompt)
            )
            .into(),
        })
    }

    /// Whether it is the model's context that is exceeded.
    #[must_use]
    pub(crate) fn exceeds_context(&self) -> bool {
        match self {
            Self::TooLong { .. } | Self::NoRoom { .. } | Self::ExceedsContext { .. } => true,
            Self::Empty | Self::NoTokens | Self::SystemWithoutTemplate | Self::UnknownToken { .. } => false,
        }
    }
}
