//! Why a checkpoint cannot be read.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use super::near::{elsewhere, neighbour};
use crate::diagnostic::system;

/// A refusal: the file and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {reason}", path.display())]
pub struct ReadError {
    /// The file (or directory) refused.
    pub path: PathBuf,
    /// A lowercase fragment with the tensor and the numbers.
    pub reason: String,
    /// Which family of mistakes it is; the planner turns it into a code.
    pub kind: ReadErrorKind,
    /// What to do about it.
    pub help: Option<String>,
}

/// The families of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// Nothing there (or a dangling link).
    NotFound,
    /// There, but not a readable checkpoint.
    Unreadable,
    /// There, but nobody gave leave to read it.
    Forbidden,
    /// The index file and the shards disagree.
    BadIndex,
}

/// An oddity that does not prevent reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadWarning {
    /// A shard holds a tensor that the index file does not list.
    UnlistedTensor {
        /// The shard.
        path: PathBuf,
        /// The tensor.
        key: super::Key,
    },
    /// Bytes after the last tensor.
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// How many.
        bytes: u64,
    },
}

impl ReadError {
    pub(super) fn unreadable(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), reason: reason.into(), kind: ReadErrorKind::Unreadable, help: None }
    }

    pub(super) fn bad_index(path: &Path, reason: impl Into<String>) -> Self {
        Self { kind: ReadErrorKind::BadIndex, ..Self::unreadable(path, reason) }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// What the system said when the file at `path` was opened or read.
    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::not_found(path);
        }
        let kind = match error.kind() {
            io::ErrorKind::PermissionDenied => ReadErrorKind::Forbidden,
            _ => ReadErrorKind::Unreadable,
        };
        Self { kind, ..Self::unreadable(path, system::says(error)) }.help(system::reading(error))
    }

    fn not_found(path: &Path) -> Self {
        let missing = |reason: String| Self {
            path: path.to_owned(),
            reason,
            kind: ReadErrorKind::NotFound,
            help: None,
        };
        if let Ok(target) = path.read_link() {
            return missing(format!("a link to `{}`, which does not exist", target.display()))
                .help("download the file again: model caches delete the files behind their links");
        }
        let shell = path.components().any(|part| {
            let part = part.as_os_str().as_encoded_bytes();
            part.starts_with(b"~") || part.contains(&b'$')
        });
        let refused = missing("no such file or directory".into());
        let help = if shell {
            Some("`~` and `$VAR` are not expanded: write the path out".to_owned())
        } else {
            elsewhere(path).or_else(|| neighbour(path, &["safetensors"]))
        };
        match help {
            Some(help) => refused.help(help),
            None => refused,
        }
    }
}

/// A name from a file, fit for a message: control characters escaped, its middle left out when it is very long.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 200;
        const KEPT: usize = 80;
        f.write_char('`')?;
        let length = self.0.chars().count();
        let head = if length > LONGEST { KEPT } else { length };
        escape(f, self.0.chars().take(head))?;
        if head < length {
            f.write_char('…')?;
            escape(f, self.0.chars().skip(length - KEPT))?;
        }
        f.write_char('`')
    }
}

fn escape(f: &mut fmt::Formatter<'_>, text: impl Iterator<Item = char>) -> fmt::Result {
    for c in text {
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            write!(f, "{}", c.escape_default())?;
        } else {
            f.write_char(c)?;
        }
    }
    Ok(())
}

/// `a`, `b` and 3 more.
pub(super) fn listed(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 3;
    let shown = if names.len() == SHOWN + 1 { SHOWN + 1 } else { SHOWN };
    let mut text = String::new();
    for (place, name) in names.iter().take(shown).enumerate() {
        let last = place + 1 == names.len();
        let before = if place == 0 {
            ""
        } else if last {
            " and "
        } else {
            ", "
        };
        let _ = write!(text, "{before}{}", Quoted(name.as_ref()));
    }
    if names.len() > shown {
        let _ = write!(text, " and {} more", names.len() - shown);
    }
    text
}
