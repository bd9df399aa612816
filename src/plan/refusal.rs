//! [`Refusal`] as an error: its text is that of its errors.

use std::fmt;

use super::plan::Refusal;
use crate::diagnostic::{Diagnostic, Severity};

/// One error per line; warnings and notes are left out.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.diagnostics.iter().filter(|found| found.severity() == Severity::Error);
        let lines: Vec<String> = errors.map(Diagnostic::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Refusal {}
