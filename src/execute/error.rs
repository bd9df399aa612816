//! [`ExecuteError`]: why executing a plan failed.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::checkpoint::{Key, Shard};
use crate::diagnostic::{Code, Diagnostic, system, words};
use crate::plan::Step;

/// Why executing a plan failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// A base or donor file changed after planning.
    #[error("`{}` changed after planning", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A tensor's bytes could not be read.
    #[error("cannot read `{key}` from `{}`: {}", path.display(), system::says(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The tensor as that file names it.
        key: Key,
        /// Whether the file is a donor's.
        donor: bool,
        /// The system's error.
        source: io::Error,
    },
    /// Finite inputs give a result that is not finite in the tensor's dtype.
    #[error(
        "{} of `{key}` would not be finite, the first at index {first}, after {}",
        words::count(*count, "element"),
        listed(operations)
    )]
    NotFinite {
        /// The edited tensor.
        key: Key,
        /// Number of elements.
        count: u64,
        /// The lowest index, counted over the flattened tensor.
        first: u64,
        /// The operations on that tensor, in order.
        operations: Vec<Place>,
    },
}

/// An operation as messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its place in the file, from 0.
    pub index: usize,
    /// `scale`, `add`, …
    pub op: &'static str,
    /// 1-based line in the surgery file.
    pub line: usize,
}

impl Place {
    /// A planned operation's.
    pub(super) fn of(step: &Step) -> Self {
        Self { index: step.index.position(), op: step.op.name(), line: step.line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {} (`{}`, line {})", self.index + 1, self.op, self.line)
    }
}

/// The first few operations, and the number of others.
fn listed(operations: &[Place]) -> String {
    const MAX_LISTED: usize = 4;
    let few: Vec<String> = operations.iter().take(MAX_LISTED).map(Place::to_string).collect();
    match operations.len().saturating_sub(MAX_LISTED) {
        0 => few.join(", "),
        more => format!("{} and {more} more", few.join(", ")),
    }
}

impl ExecuteError {
    /// A tensor's bytes could not be read. A file that ends before them has changed since its header was read.
    pub(super) fn read(shard: &Shard, key: &Key, donor: bool, source: io::Error) -> Self {
        let path = shard.path.clone();
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Self::Changed { path },
            _ => Self::Read { path, key: key.clone(), donor, source },
        }
    }
}

impl From<&ExecuteError> for Diagnostic {
    fn from(error: &ExecuteError) -> Self {
        let (code, help) = match error {
            ExecuteError::Changed { .. } => {
                (Code::FileChanged, "run again when nothing writes to the base or its donors")
            }
            ExecuteError::Read { donor, source, .. } => {
                let code = match donor {
                    _ if source.kind() == io::ErrorKind::OutOfMemory => Code::OutOfMemory,
                    true => Code::DonorUnreadable,
                    false => Code::ModelUnreadable,
                };
                (code, system::reading(source))
            }
            ExecuteError::NotFinite { .. } => (
                Code::NotFiniteResult,
                "use a smaller factor, alpha or donor (f16 holds values up to 65504, bf16 and f32 up to 3.4e38)",
            ),
        };
        Self::new(code, error.to_string()).help(help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_operations_are_named() {
        let places: Vec<Place> = (0..6).map(|index| Place { index, op: "scale", line: index + 3 }).collect();
        assert_eq!(listed(&places[..2]), "operation 1 (`scale`, line 3), operation 2 (`scale`, line 4)");
        assert!(
            listed(&places).ends_with(", operation 4 (`scale`, line 6) and 2 more"),
            "{}",
            listed(&places)
        );
    }
}
