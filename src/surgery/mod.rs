//! What was asked: the YAML as a spanned tree, lowered by hand to [`Operation`]s.
//!
//! ```text
//! bytes ──read──▶ text ──node──▶ Node ──lower──▶ Operation (fields, values, patterns)
//!                         └─syntax─▶ Diagnostic ◀─report──┘
//! ```
//!
//! Nothing here knows of checkpoints: patterns are parsed, not matched; donors are paths, not files.

mod entry;
mod fields;
mod keys;
mod lower;
mod merge;
mod node;
mod numbers;
mod operation;
mod pattern;
mod read;
mod report;
mod schema;
mod structure;
mod suggest;
mod syntax;
#[cfg(test)]
mod tests;
mod texts;
mod values;
mod which;

pub use operation::{Fragment, Granularity, Kind, Method, Operation, Spanned};
pub use pattern::{Captures, Group, Matcher, Pattern, PatternError, Template};
pub use report::WRITTEN;
pub use schema::schema;

use std::path::{Path, PathBuf};

use crate::diagnostic::{Code, Diagnostic, Source};

/// A surgery file, read and lowered. Mistakes are kept beside the operations that have none, so that one run can plan
/// the rest and report everything.
#[derive(Debug)]
pub struct SurgeryFile {
    /// The text, for rendering.
    #[doc(hidden)]
    pub source: Source,
    /// The directory that relative donors are resolved against: that of the file as it was named, possibly empty.
    #[doc(hidden)]
    pub dir: PathBuf,
    /// The operations that can be planned, in file order: those without a mistake, and others for the sake of what else
    /// may be wrong with them.
    #[doc(hidden)]
    pub operations: Vec<Operation>,
    /// What is left of the other operations.
    #[doc(hidden)]
    pub fragments: Vec<Fragment>,
    /// Everything wrong with the file itself, in file order.
    pub diagnostics: Vec<Diagnostic>,
}

impl SurgeryFile {
    /// Reads a file. One that cannot be read is a `SurgeryFile` with a `file_unreadable` diagnostic.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        match read::read(path) {
            Ok(bytes) => Self::parse(path, &bytes),
            Err(refusal) => Self::refused(path, "", refusal),
        }
    }

    /// Parses bytes that came from `path` (used for messages and for resolving donors).
    #[must_use]
    pub fn parse(path: &Path, bytes: &[u8]) -> Self {
        if bytes.len() as u64 > read::MAX_SIZE {
            let refusal = Diagnostic::new(Code::FileUnreadable, read::too_large(path, bytes.len() as u64));
            return Self::refused(path, "", refusal.help("a surgery file has at most 4 MiB (4.19 MB)"));
        }
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let text = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                return Self::refused(path, &String::from_utf8_lossy(bytes), syntax::not_utf8(bytes, error));
            }
        };
        match node::parse(text) {
            Ok(root) => {
                let mut file = Self::empty(path, text);
                lower::lower(&root, &mut file);
                file
            }
            Err(error) => Self::refused(path, text, syntax::diagnose(text, &error)),
        }
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
