//! [`SurgeryFile`]: a surgery file, read, parsed and lowered.

use std::path::{Path, PathBuf};

use super::lower::lower;
use super::operation::{Fragment, Operation};
use super::read::{self, read};
use super::tree;
use crate::diagnostic::{Diagnostic, Source};

/// A surgery file. It keeps its mistakes beside its sound operations, so that one run plans the rest and reports
/// everything.
#[derive(Debug)]
pub struct SurgeryFile {
    /// The text, for rendering.
    #[doc(hidden)]
    pub source: Source,
    /// The directory of the file as it was named, possibly empty; relative donors are resolved against it.
    #[doc(hidden)]
    pub dir: PathBuf,
    /// The operations that can be planned, in file order: sound ones, and unsound ones in which planning may find further
    /// mistakes.
    #[doc(hidden)]
    pub operations: Vec<Operation>,
    /// What is readable of the other operations.
    #[doc(hidden)]
    pub fragments: Vec<Fragment>,
    /// The mistakes in the file itself, in file order.
    pub diagnostics: Vec<Diagnostic>,
}

impl SurgeryFile {
    /// Reads a file. An unreadable one becomes a `SurgeryFile` with a `file_unreadable` diagnostic.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        match read(path) {
            Ok(bytes) => Self::parse(path, &bytes),
            Err(refusal) => Self::refused(path, "", refusal),
        }
    }

    /// Parses bytes that came from `path`, which messages name and donors are resolved against.
    #[must_use]
    pub fn parse(path: &Path, bytes: &[u8]) -> Self {
        if bytes.len() as u64 > read::MAX_SIZE {
            return Self::refused(path, "", read::too_large(path, bytes.len() as u64));
        }
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let text = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                return Self::refused(path, &String::from_utf8_lossy(bytes), tree::not_utf8(bytes, error));
            }
        };
        let mut file = Self::empty(path, text);
        match tree::parse(text) {
            Ok(root) => {
                let lowered = lower(&root, text, &file.dir);
                file.operations = lowered.operations;
                file.fragments = lowered.fragments;
                file.diagnostics = lowered.diagnostics;
            }
            Err(error) => file.diagnostics.push(tree::diagnose(text, &error)),
        }
        file
    }

    fn refused(path: &Path, text: &str, refusal: Diagnostic) -> Self {
        Self { diagnostics: vec![refusal], ..Self::empty(path, text) }
    }

    fn empty(path: &Path, text: &str) -> Self {
        Self {
            source: Source { path: path.to_owned(), text: text.into() },
            dir: path.parent().map(Path::to_owned).unwrap_or_default(),
            operations: Vec::new(),
            fragments: Vec::new(),
            diagnostics: Vec::new(),
        }
    }
}
