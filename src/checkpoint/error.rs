//! Why a checkpoint cannot be read.

use std::io;
use std::path::{Path, PathBuf};

use super::Key;
use super::suggest_path::{elsewhere, neighbour};
use crate::diagnostic::system;

/// An error about a file of a checkpoint.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {reason}", path.display())]
pub struct ReadError {
    /// The file or directory.
    pub path: PathBuf,
    /// A lowercase fragment with the tensor and the numbers.
    pub reason: String,
    /// The kind of error; the planner maps it to a code.
    pub kind: ReadErrorKind,
    /// How to fix it.
    pub help: Option<String>,
}

/// The kinds of [`ReadError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// The path does not exist, or is a dangling link.
    NotFound,
    /// The path exists, but is not a readable checkpoint.
    Unreadable,
    /// The permissions forbid reading.
    Forbidden,
    /// The index file and the shards disagree.
    BadIndex,
}

/// A finding that does not prevent reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadWarning {
    /// A shard holds a tensor that the index file does not list.
    UnlistedTensor {
        /// The shard.
        path: PathBuf,
        /// The tensor.
        key: Key,
    },
    /// Bytes follow the last tensor.
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// The number of bytes.
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

    /// The error for a failure of the system to open or read `path`.
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
            Some("`~` and `$VAR` are not expanded; write the whole path".to_owned())
        } else {
            elsewhere(path).or_else(|| neighbour(path, &["safetensors"]))
        };
        match help {
            Some(help) => refused.help(help),
            None => refused,
        }
    }
}
