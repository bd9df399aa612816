//! [`TextPipeline`]: everything beside the weights that turns requests into tokens and tokens into text.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::error::ApiError;
use super::guide::{GuideCompiler, GuideError};
use crate::generate::{ChatTemplate, Defaults, Error, Limits, Tokenizer};

/// Tokenizer, chat template, limits and generation defaults of a model directory.
#[derive(Debug)]
pub(crate) struct TextPipeline {
    pub(super) tokenizer: Arc<Tokenizer>,
    template: Option<ChatTemplate>,
    pub(super) defaults: Defaults,
    /// The end-of-text tokens.
    pub(super) eos: Vec<u32>,
    pub(super) limits: Limits,
    /// Created by the first request with a schema.
    guide_compiler: OnceLock<Result<GuideCompiler, GuideError>>,
}

impl TextPipeline {
    /// Reads the files of a model directory whose configuration is `config`. `context` lowers the context length,
    /// `template` is a file that replaces the model's chat template.
    ///
    /// # Errors
    /// When a file cannot be read or is malformed; the file is named.
    pub(crate) fn open(
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
        Ok(Self { tokenizer, template, defaults, eos, limits, guide_compiler: OnceLock::new() })
    }

    /// The context length if known: maximum positions of prompt and answer together.
    #[must_use]
    pub(crate) fn context(&self) -> Option<usize> {
        self.limits.context
    }

    /// The chat template.
    pub(super) fn template(&self) -> Result<&ChatTemplate, ApiError> {
        let message =
            "the model has no chat template; use /v1/completions or start the server with `--chat-template`";
        self.template.as_ref().ok_or_else(|| ApiError::invalid_field("messages", message))
    }

    /// The compiler of JSON schemas.
    pub(super) fn guide_compiler(&self) -> Result<&GuideCompiler, GuideError> {
        let vocabulary = self.limits.vocabulary.unwrap_or_default();
        let compiler =
            self.guide_compiler.get_or_init(|| GuideCompiler::new(&self.tokenizer, &self.eos, vocabulary));
        compiler.as_ref().map_err(Clone::clone)
    }
}
