//! [`ExportError`]: why an export failed. Nothing is left behind when one is returned.

use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint::Shard;
use crate::diagnostic::{Code, Diagnostic, system};
use crate::execute::ExecuteError;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The plan could not be carried out.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// The output exists.
    #[error("`{}` already exists ({what})", path.display())]
    Exists {
        /// The output.
        path: PathBuf,
        /// What kind of file it is.
        what: &'static str,
    },
    /// No directory can be made at the output's path.
    #[error("{reason}")]
    Unfit {
        /// The output.
        path: PathBuf,
        /// The reason, a lowercase fragment.
        reason: String,
        /// What to do instead.
        help: &'static str,
    },
    /// A file could not be written.
    #[error("cannot write `{}`: {}", path.display(), system::says(source))]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of the base could not be copied.
    #[error("cannot copy `{}`: {}", path.display(), system::says(source))]
    Copy {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of the base is a broken link.
    #[error("cannot copy `{}`: it is a link to `{}`, which does not exist", path.display(), target.display())]
    Dangling {
        /// The link.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// The disk is too small.
    #[error("the export needs {needed} bytes, but only {free} are free at `{}`", path.display())]
    Space {
        /// The directory it would be written in.
        path: PathBuf,
        /// Bytes of the export.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A [`Stop`](super::Stop) was requested.
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

    /// A shard that ends too early has changed since its header was read.
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
            ExportError::Exists { .. } => (Code::OutputExists, "name a directory that does not exist yet"),
            ExportError::Unfit { help, .. } => (Code::OutputUnwritable, *help),
            ExportError::Write { source, .. } => (Code::OutputUnwritable, system::writing(source)),
            ExportError::Space { .. } => {
                (Code::OutputUnwritable, "free some space or export to another disk")
            }
            ExportError::Interrupted => (Code::OutputUnwritable, "run it again to export from the beginning"),
            ExportError::Dangling { .. } => (
                Code::ModelUnreadable,
                "download the file again (model caches delete the files behind their links), or remove the link",
            ),
            ExportError::Copy { source, .. } => (Code::ModelUnreadable, system::reading(source)),
        };
        Self::new(code, error.to_string()).help(help)
    }
}
