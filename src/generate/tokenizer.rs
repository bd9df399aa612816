//! [`Tokenizer`]: text to token ids, and [`TextStream`]: token ids to text, never half a character.

use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use serde_json::{Map, Value};

use super::Error;
use super::error::{not_json, read_bounded, read_json};
use super::spelling::Spelling;

/// The longest `tokenizer.json` that is read; the largest published ones have about 35 MB.
const LIMIT: u64 = 256 << 20;
/// The longest `tokenizer_config.json` that is read.
const CONFIG_LIMIT: u64 = 32 << 20;

/// A model's `tokenizer.json` and `tokenizer_config.json`.
#[derive(Debug)]
pub struct Tokenizer {
    path: PathBuf,
    inner: tokenizers::Tokenizer,
    spelling: Spelling,
    special: HashSet<u32>,
    config: Map<String, Value>,
}

impl Tokenizer {
    /// Reads the tokenizer of a model directory.
    ///
    /// # Errors
    /// When `tokenizer.json` is missing or one of the files is not what it should be; the file is named.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("tokenizer.json");
        let Some(bytes) = read_bounded(&path, LIMIT)? else {
            return Err(Error::file(&path, "there is no tokenizer").or_help(
                "a model directory needs the `tokenizer.json` it was published with; `--tokens` works without",
            ));
        };
        if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&bytes) {
            return Err(Error::file(&path, not_json(&bytes, &error)));
        }
        let wrong = |error| Error::file(&path, format!("is not a tokenizer: {error}"));
        let read = || {
            let mut inner = tokenizers::Tokenizer::from_bytes(bytes)?;
            // Some files keep the settings of their last training run; a prompt must arrive whole.
            inner.with_padding(None).with_truncation(None)?;
            // Some contradictions show only when there is something to encode.
            inner.encode_fast("a b", false)?;
            Ok(inner)
        };
        let inner = guarded(read).map_err(wrong)?;
        let config = read_json(&dir.join("tokenizer_config.json"), CONFIG_LIMIT)?.unwrap_or_default();
        let special = inner.get_added_tokens_decoder().into_iter();
        let special = special.filter(|(_, token)| token.special).map(|(id, _)| id).collect();
        Ok(Self { path, spelling: Spelling::of(&inner), inner, special, config })
    }

    /// `tokenizer_config.json`; empty when there is none.
    #[must_use]
    pub fn config(&self) -> &Map<String, Value> {
        &self.config
    }

    /// Token ids of a text; `special` adds the tokens that the model wants around a text, such as BOS.
    ///
    /// # Errors
    /// What the tokenizer says.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, Error> {
        match guarded(|| self.inner.encode_fast(text, special)) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(error) => Err(Error::file(&self.path, format!("cannot encode the text: {error}"))),
        }
    }

    /// The text of a whole answer, special tokens left out: what a [`TextStream`] gives in pieces.
    #[must_use]
    pub fn decode(self: &Arc<Self>, ids: &[u32]) -> String {
        let mut stream = TextStream::new(Arc::clone(self), Start::Continuation);
        ids.iter().map(|id| stream.push(*id)).collect()
    }

    /// The bytes a token stands for, special or not; empty for an id that the tokenizer does not know.
    #[must_use]
    pub fn bytes(&self, id: u32) -> Vec<u8> {
        self.inner.id_to_token(id).map_or_else(Vec::new, |token| self.spelling.bytes(token))
    }

    /// Whether a token stands for something other than text, such as the end of a turn.
    #[must_use]
    pub fn is_special(&self, id: u32) -> bool {
        self.special.contains(&id)
    }

    /// The id of a token spelled out, such as `<|im_end|>`.
    #[must_use]
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The token that `tokenizer_config.json` names under `bos_token`, `eos_token`, ….
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&str> {
        let value = self.config.get(name)?;
        value.as_str().or_else(|| value.get("content")?.as_str())
    }

    /// The token that ends a text, as `tokenizer_config.json` has it.
    #[must_use]
    pub fn eos(&self) -> Option<u32> {
        self.id(self.named("eos_token")?)
    }
}

/// Runs what reads and follows a stranger's `tokenizer.json`. The library trusts such a file, and panics over some of
/// those that contradict themselves; that is an answer like any other, and not the end of the process.
fn guarded<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> tokenizers::Result<T> {
    thread_local!(static QUIET: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    // Set once and for all, since several threads may be at work; each keeps silent about its own.
    HOOK.call_once(|| {
        let said = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                said(panic);
            }
        }));
    });
    QUIET.set(true);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    QUIET.set(false);
    result.unwrap_or_else(|_| Err("its parts contradict each other".into()))
}

/// What a text that is generated stands after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It continues a text: a space before its first word is part of it.
    Continuation,
    /// It is an answer of its own: the space that some tokenizers put before every first word is not part of it.
    Answer,
}

/// Turns tokens into text piece by piece. Bytes of a character that is not complete yet are held back, bytes that can
/// never become one are U+FFFD.
#[derive(Debug)]
pub struct TextStream {
    tokenizer: Arc<Tokenizer>,
    held: Vec<u8>,
    strip: bool,
    /// For tokenizers whose tokens have no bytes of their own: everything so far, and how much of its text was given.
    whole: (Vec<u32>, usize),
}

impl TextStream {
    /// The stream at its beginning.
    #[must_use]
    pub fn new(tokenizer: Arc<Tokenizer>, start: Start) -> Self {
        let strip = start == Start::Answer && tokenizer.spelling.leads_with_space();
        Self { tokenizer, held: Vec::new(), strip, whole: (Vec::new(), 0) }
    }

    /// Takes a token and gives the characters that are complete now. Special tokens have no text.
    pub fn push(&mut self, id: u32) -> String {
        if self.tokenizer.special.contains(&id) {
            return String::new();
        }
        if self.tokenizer.spelling == Spelling::Whole {
            return self.push_whole(id);
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

    fn push_whole(&mut self, id: u32) -> String {
        let (ids, given) = &mut self.whole;
        ids.push(id);
        let text = self.tokenizer.inner.decode(ids, true).unwrap_or_default();
        let piece = text.get(*given..).unwrap_or_default().to_owned();
        *given += piece.len();
        piece
    }
}

/// Takes the complete characters from the front of `bytes` and leaves a character that may still be completed.
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
