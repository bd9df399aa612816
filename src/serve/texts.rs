//! [`Texts`]: everything beside the weights that turns requests into tokens and tokens into text.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::error::ApiError;
use super::guide::Guides;
use crate::generate::{ChatTemplate, Defaults, Error, Limits, Tokenizer};

/// Tokenizer, chat template and advice of a model directory.
#[derive(Debug)]
pub struct Texts {
    pub(super) tokenizer: Arc<Tokenizer>,
    template: Option<ChatTemplate>,
    pub(super) defaults: Defaults,
    pub(super) eos: Vec<u32>,
    pub(super) limits: Limits,
    /// Made when the first format is asked for.
    guides: OnceLock<Result<Guides, String>>,
}

impl Texts {
    /// Reads the files of a model directory whose configuration is `config`. No more than `context` positions are
    /// used, if given.
    ///
    /// # Errors
    /// What is wrong with a file, which is named.
    pub fn open(
        dir: &Path,
        config: &Map<String, Value>,
        template: Option<&Path>,
        context: Option<usize>,
    ) -> Result<Self, Error> {
        let tokenizer = Arc::new(Tokenizer::open(dir)?);
        let template = ChatTemplate::find(dir, &tokenizer, template)?;
        let defaults = Defaults::read(dir)?;
        let eos = defaults.eos_ids(config, Some(&tokenizer));
        let mut limits = Limits::of_config(config);
        limits.context = [limits.context, context].into_iter().flatten().min();
        Ok(Self { tokenizer, template, defaults, eos, limits, guides: OnceLock::new() })
    }

    /// Positions that are used at most, where that is known.
    #[must_use]
    pub fn context(&self) -> Option<usize> {
        self.limits.context
    }

    /// The chat template, where the model has one.
    pub(super) fn template(&self) -> Result<&ChatTemplate, ApiError> {
        let message =
            "the model has no chat template: use /v1/completions, or start the server with `--chat-template`";
        self.template.as_ref().ok_or_else(|| ApiError::field("messages", message))
    }

    /// What holds answers to formats, for a model of so many tokens.
    pub(super) fn guides(&self, vocabulary: usize) -> Result<&Guides, ApiError> {
        let guides = self.guides.get_or_init(|| Guides::new(&self.tokenizer, &self.eos, vocabulary));
        guides.as_ref().map_err(|reason| ApiError::field("response_format", reason))
    }
}
