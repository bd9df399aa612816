//! [`Tokenizer`]: text to token ids; [`TextStream`]: token ids to text, one complete character after another.

use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use serde_json::{Map, Value};

use super::error::Error;
use super::files::{json_error, read_bounded, read_json};
use super::token_bytes::TokenBytes;

/// Maximum size of `tokenizer.json` in bytes; the largest published ones have about 35 MB.
const MAX_TOKENIZER_BYTES: u64 = 256 << 20;
/// Maximum size of `tokenizer_config.json` in bytes.
const MAX_CONFIG_BYTES: u64 = 32 << 20;

/// A model's `tokenizer.json` and `tokenizer_config.json`.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    path: PathBuf,
    inner: tokenizers::Tokenizer,
    token_bytes: TokenBytes,
    special: HashSet<u32>,
    config: Map<String, Value>,
}

impl Tokenizer {
    /// Reads the tokenizer of a model directory.
    ///
    /// # Errors
    /// When `tokenizer.json` is missing, or a file is malformed; the file is named.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("tokenizer.json");
        let Some(bytes) = read_bounded(&path, MAX_TOKENIZER_BYTES)? else {
            return Err(Error::file(&path, "the tokenizer does not exist")
                .or_help("add the `tokenizer.json` that the model was published with, or use `--tokens`"));
        };
        if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&bytes) {
            return Err(Error::file(&path, json_error(&bytes, &error)));
        }
        let invalid = |error| Error::file(&path, format!("is not a valid tokenizer: {error}"));
        let read = || {
            let mut inner = tokenizers::Tokenizer::from_bytes(bytes)?;
            // Some files keep padding and truncation from training, which would alter prompts.
            inner.with_padding(None).with_truncation(None)?;
            // Some inconsistencies show only when a text is encoded.
            inner.encode_fast("a b", false)?;
            Ok(inner)
        };
        let inner = catch_panic(read).map_err(invalid)?;
        let config = read_json(&dir.join("tokenizer_config.json"), MAX_CONFIG_BYTES)?.unwrap_or_default();
        let special = inner.get_added_tokens_decoder().into_iter();
        let special = special.filter(|(_, token)| token.special).map(|(id, _)| id).collect();
        Ok(Self { path, token_bytes: TokenBytes::of(&inner), inner, special, config })
    }

    /// `tokenizer_config.json`; empty when there is none.
    #[must_use]
    pub(crate) fn config(&self) -> &Map<String, Value> {
        &self.config
    }

    /// Token ids of a text; `special` adds the special tokens around it, such as BOS.
    ///
    /// # Errors
    /// When the tokenizer fails.
    pub(crate) fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, Error> {
        match catch_panic(|| self.inner.encode_fast(text, special)) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(error) => Err(Error::file(&self.path, format!("cannot encode the text: {error}"))),
        }
    }

    /// The text of token ids without special tokens: all pieces of a [`TextStream`] together.
    #[must_use]
    pub(crate) fn decode(self: &Arc<Self>, ids: &[u32]) -> String {
        let mut stream = TextStream::new(Arc::clone(self), Start::Continuation);
        ids.iter().map(|id| stream.push(*id)).collect()
    }

    /// The bytes of a token, special or not; empty for an unknown id.
    #[must_use]
    pub(crate) fn bytes(&self, id: u32) -> Vec<u8> {
        self.inner.id_to_token(id).map_or_else(Vec::new, |token| self.token_bytes.bytes(token))
    }

    /// Whether a token is a control token rather than text, such as the end of a turn.
    #[must_use]
    pub(crate) fn is_special(&self, id: u32) -> bool {
        self.special.contains(&id)
    }

    /// The id of a token spelled out, such as `<|im_end|>`.
    #[must_use]
    pub(crate) fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The token that `tokenizer_config.json` defines as `bos_token`, `eos_token`, ….
    #[must_use]
    pub(crate) fn named(&self, name: &str) -> Option<&str> {
        let value = self.config.get(name)?;
        value.as_str().or_else(|| value.get("content")?.as_str())
    }

    /// The end-of-text token of `tokenizer_config.json`.
    #[must_use]
    pub(crate) fn eos(&self) -> Option<u32> {
        self.id(self.named("eos_token")?)
    }
}

/// Runs work on an untrusted `tokenizer.json` and turns a panic into an error: the library panics on some inconsistent
/// files.
fn catch_panic<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> tokenizers::Result<T> {
    thread_local!(static QUIET: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    // The hook is global, so it is set once; each thread silences only its own panics.
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                previous(panic);
            }
        }));
    });
    QUIET.set(true);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    QUIET.set(false);
    result.unwrap_or_else(|_| Err("its parts are inconsistent".into()))
}

/// What the generated text follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// A text that it continues: a space before its first word is part of it.
    Continuation,
    /// A chat prompt: the space that some tokenizers put before the first word is not part of the answer.
    Answer,
}

/// Turns tokens into text piece by piece. Bytes of an incomplete character are held back; invalid bytes become U+FFFD.
#[derive(Debug)]
pub(crate) struct TextStream {
    tokenizer: Arc<Tokenizer>,
    /// Bytes of an incomplete character.
    held: Vec<u8>,
    /// Whether a leading space is still to be dropped.
    strip: bool,
    /// For tokenizers whose tokens have no bytes of their own: all tokens, and the length of the text returned so far.
    sequence: (Vec<u32>, usize),
}

impl TextStream {
    /// A stream without tokens.
    #[must_use]
    pub(crate) fn new(tokenizer: Arc<Tokenizer>, start: Start) -> Self {
        let strip = start == Start::Answer && tokenizer.token_bytes.has_leading_space();
        Self { tokenizer, held: Vec::new(), strip, sequence: (Vec::new(), 0) }
    }

    /// Adds a token; returns the characters that are complete now. Special tokens have no text.
    pub(crate) fn push(&mut self, id: u32) -> String {
        if self.tokenizer.special.contains(&id) {
            return String::new();
        }
        if self.tokenizer.token_bytes == TokenBytes::SequenceOnly {
            return self.push_to_sequence(id);
        }
        self.held.extend(self.tokenizer.bytes(id));
        if self.strip && !self.held.is_empty() {
            self.strip = false;
            if self.held[0] == b' ' {
                self.held.remove(0);
            }
        }
        take_characters(&mut self.held)
    }

    fn push_to_sequence(&mut self, id: u32) -> String {
        let (ids, returned) = &mut self.sequence;
        ids.push(id);
        let text = self.tokenizer.inner.decode(ids, true).unwrap_or_default();
        let piece = text.get(*returned..).unwrap_or_default().to_owned();
        *returned += piece.len();
        piece
    }
}

/// Removes the complete characters from the front of `bytes`; leaves the bytes of an incomplete one.
fn take_characters(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut rest = bytes.as_slice();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                rest = &[];
            }
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                rest = after;
                if let Some(len) = error.error_len() {
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &rest[len..];
                    continue;
                }
            }
        }
        let left = rest.len();
        bytes.drain(..bytes.len() - left);
        return text;
    }
}

#[cfg(test)]
mod tests;
