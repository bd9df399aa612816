//! [`Failure`]: why a command could not run to its end.

use std::io;

use super::exit::Exit;
use crate::diagnostic::{Look, render_error, system};

/// How a command ended, or why it could not run to its end (exit code 1).
pub(super) type Outcome = Result<Exit, Failure>;

/// Why a command could not run to its end.
#[derive(Debug)]
pub(super) enum Failure {
    /// The errors have been printed.
    Reported,
    /// An error that is still to be printed.
    Error {
        /// A lowercase fragment without a period.
        message: String,
        /// How to fix it.
        help: Option<String>,
    },
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self::Error { message: message.into(), help: None }
    }

    /// A system error while doing `what`, such as `cannot write to standard output`.
    pub(super) fn io(what: &str, error: &io::Error) -> Self {
        Self::new(format!("{what}: {}", system::says(error)))
    }

    /// Sets the help.
    pub(super) fn help(self, text: impl Into<String>) -> Self {
        match self {
            Self::Error { message, .. } => Self::Error { message, help: Some(text.into()) },
            Self::Reported => Self::Reported,
        }
    }

    /// Puts `what` before the message.
    pub(super) fn context(self, what: &str) -> Self {
        match self {
            Self::Error { message, help } => Self::Error { message: format!("{what}: {message}"), help },
            Self::Reported => Self::Reported,
        }
    }

    /// The text to print; empty if the errors have been printed.
    pub(super) fn text(&self, look: Look) -> String {
        match self {
            Self::Reported => String::new(),
            Self::Error { message, help } => render_error(message, help.as_deref(), look),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_reads_as_a_diagnostic_without_a_code() {
        let full = io::Error::other("Disk full");
        let failure = Failure::io("cannot write to standard output", &full).context("the file is complete");
        assert_eq!(
            failure.help("free some space").text(Look { unicode: false, ..Look::PLAIN }),
            "error: the file is complete: cannot write to standard output: disk full\n = help: free some space\n"
        );
        assert_eq!(Failure::Reported.text(Look::PLAIN), "");
    }
}
