//! [`ExportError`]: why there is no export. Nothing is left behind when one is returned.

use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint::Shard;
use crate::diagnostic::{Code, Diagnostic};
use crate::execute::ExecuteError;

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The plan could not be carried out.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// There is something at the output's path.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// The output.
        path: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file of the base could not be copied.
    #[error("cannot copy `{}`: {source}", path.display())]
    Copy {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The export would not fit.
    #[error("the export needs {needed} bytes, and {free} are free at `{}`", path.display())]
    Space {
        /// The directory it would be written in.
        path: PathBuf,
        /// Bytes.
        needed: u64,
        /// Bytes.
        free: u64,
    },
    /// Somebody asked to stop.
    #[error("interrupted; nothing is left behind")]
    Interrupted,
}

impl ExportError {
    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Write { path: path.to_owned(), source }
    }

    pub(super) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Copy { path: path.to_owned(), source }
    }

    /// A shard whose header was read can only end too early if it has changed.
    pub(super) fn copy(shard: &Shard, source: io::Error) -> Self {
        let path = shard.path.clone();
        match source.kind() {
            io::ErrorKind::UnexpectedEof => ExecuteError::Changed { path }.into(),
            _ => Self::Copy { path, source },
        }
    }
}

impl From<&ExportError> for Diagnostic {
    fn from(error: &ExportError) -> Self {
        let (code, help) = match error {
            ExportError::Execute(error) => return error.into(),
            ExportError::Exists { .. } => {
                (Code::OutputExists, "choose another directory, or remove this one first")
            }
            ExportError::Write { source, .. } => (Code::OutputUnwritable, advice(source.kind())),
            ExportError::Space { .. } => {
                (Code::OutputUnwritable, "free some space, or export to another disk")
            }
            ExportError::Interrupted => (Code::OutputUnwritable, "run it again to export from the beginning"),
            ExportError::Copy { .. } => (Code::ModelUnreadable, "check the file and its disk"),
        };
        Self::new(code, error.to_string()).help(help)
    }
}

/// What to do about an output that cannot be written.
fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::StorageFull => {
            "the disk is full, and nothing is left behind: free some space, or export to another disk"
        }
        io::ErrorKind::QuotaExceeded => {
            "your share of the disk is used up, and nothing is left behind: free some space, or export to another disk"
        }
        io::ErrorKind::FileTooLarge => {
            "the file is larger than the system allows (`ulimit -f`), and nothing is left behind: raise that limit, or \
             export to another disk"
        }
        _ => "check that the directory exists and can be written",
    }
}
