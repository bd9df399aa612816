//! [`Error`]: why a text cannot be generated.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::checkpoint::open_regular;
use crate::diagnostic::system;

/// Why a text cannot be generated. Every message is a lowercase fragment with names in backticks.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file beside the weights (tokenizer, template, `generation_config.json`) is missing, unreadable or wrong.
    #[error("`{}`: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        help: Option<String>,
    },
    /// The chat template does not compile, or failed on these messages.
    #[error("chat template `{name}`, line {line}: {reason}")]
    Template {
        /// The file it came from.
        name: String,
        /// 1-based line in the template's own text.
        line: usize,
        /// What the template engine, or the template's own `raise_exception`, says.
        reason: String,
    },
    /// The prompt cannot be used with this model.
    #[error("{reason}")]
    Prompt {
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        help: Option<String>,
    },
    /// No token can be taken from the logits.
    #[error("{0}")]
    Logits(String),
    /// The model could not be computed.
    #[error(transparent)]
    Model(#[from] crate::mlx::Error),
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        match self {
            Self::File { help, .. } | Self::Prompt { help, .. } => help.as_deref(),
            Self::Template { .. } => Some("`--raw` feeds the prompt without a template"),
            Self::Logits(_) | Self::Model(_) => None,
        }
    }

    pub(super) fn file(path: &Path, reason: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), reason: reason.into(), help: None }
    }

    pub(super) fn prompt(reason: impl Into<String>) -> Self {
        Self::Prompt { reason: reason.into(), help: None }
    }

    pub(super) fn or_help(mut self, text: &str) -> Self {
        if let Self::File { help, .. } | Self::Prompt { help, .. } = &mut self {
            help.get_or_insert_with(|| text.to_owned());
        }
        self
    }
}

/// Reads a text that somebody gave to be read by a model.
///
/// # Errors
/// When it is no regular file, longer than [`LONGEST_TEXT`], or no UTF-8.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let Some(bytes) = read_bounded(path, LONGEST_TEXT)? else {
        return Err(Error::file(path, "does not exist"));
    };
    String::from_utf8(bytes).map_err(|_| Error::file(path, "is not UTF-8 text"))
}

/// The longest prompt or text in bytes, many times what any model's context holds.
pub const LONGEST_TEXT: u64 = 16 << 20;

/// Reads a regular file of at most `limit` bytes; `None` when there is none.
pub(super) fn read_bounded(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Ok(meta) if meta.is_symlink() && !path.try_exists().unwrap_or(true) => {
            return Err(Error::file(path, "is a link to a file that does not exist"));
        }
        _ => {}
    }
    let (file, _) = open_regular(path).map_err(|error| {
        let says_what_it_is = ["a directory, not a file", "not a regular file"].contains(&&*error.reason);
        let reason = if says_what_it_is { format!("is {}", error.reason) } else { error.reason };
        Error::File { path: path.to_owned(), reason, help: error.help }
    })?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| Error::File {
        path: path.to_owned(),
        reason: system::says(&error),
        help: Some(system::reading(&error).to_owned()),
    })?;
    if bytes.len() as u64 > limit {
        return Err(Error::file(path, format!("is longer than {} MiB", limit >> 20)));
    }
    Ok(Some(bytes))
}

/// [`read_bounded`], as a JSON object.
pub(super) fn read_json(
    path: &Path,
    limit: u64,
) -> Result<Option<serde_json::Map<String, serde_json::Value>>, Error> {
    let Some(bytes) = read_bounded(path, limit)? else { return Ok(None) };
    match serde_json::from_slice(&bytes) {
        Ok(serde_json::Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err(Error::file(path, "is not a JSON object")),
        Err(error) => Err(Error::file(path, not_json(&bytes, &error))),
    }
}

/// Says why bytes are not JSON, and names what they are where that is plain to see.
pub(super) fn not_json(bytes: &[u8], error: &serde_json::Error) -> String {
    if bytes.is_empty() {
        return "is empty".to_owned();
    }
    if bytes.starts_with(b"version https://git-lfs") {
        return "is a Git LFS pointer, not the file itself: fetch it with `git lfs pull`".to_owned();
    }
    if bytes.trim_ascii_start().starts_with(b"<") {
        return "is an HTML or XML page, not JSON: was the download refused?".to_owned();
    }
    format!("is not valid JSON: {error}")
}
