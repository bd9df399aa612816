//! [`ReadErrors`]: why a checkpoint cannot be opened, completely.

use std::fmt;
use std::ops::Deref;

use super::error::ReadError;

/// Every reason why a checkpoint cannot be opened, at least one. Each names its file.
#[derive(Debug)]
pub struct ReadErrors(Vec<ReadError>);

impl From<Vec<ReadError>> for ReadErrors {
    fn from(errors: Vec<ReadError>) -> Self {
        Self(errors)
    }
}

impl Deref for ReadErrors {
    type Target = [ReadError];

    fn deref(&self) -> &[ReadError] {
        &self.0
    }
}

impl IntoIterator for ReadErrors {
    type Item = ReadError;
    type IntoIter = std::vec::IntoIter<ReadError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// One error per line.
impl fmt::Display for ReadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            fmt::Display::fmt(error, f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ReadErrors {}
