//! What was asked: the YAML as a spanned tree ([`node`]), lowered by hand to [`Operation`]s.
//!
//! Nothing here knows of checkpoints: patterns are parsed, not matched; donors are paths, not files.

mod node;
mod operation;
mod pattern;
mod schema;

pub use operation::{Granularity, Kind, Method, Operation, Spanned};
pub use pattern::{Captures, Pattern, Template};
pub use schema::schema;

use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Source};

/// A surgery file, read and lowered. Mistakes are kept beside the operations that have none, so that one run can plan
/// the rest and report everything.
#[derive(Debug)]
pub struct SurgeryFile {
    /// The text, for rendering.
    pub source: Source,
    /// The directory that relative donors are resolved against.
    pub dir: PathBuf,
    /// The operations that lowered without a mistake, in file order.
    pub operations: Vec<Operation>,
    /// Everything wrong with the file itself, in file order.
    pub diagnostics: Vec<Diagnostic>,
}

impl SurgeryFile {
    /// Reads a file. One that cannot be read is a `SurgeryFile` with a `file_unreadable` diagnostic.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        todo!()
    }

    /// Parses bytes that came from `path` (used for messages and for resolving donors).
    #[must_use]
    pub fn parse(path: &Path, bytes: &[u8]) -> Self {
        todo!()
    }
}
