//! [`Refusal`]: why there is no plan. As an error, its text is that of its errors.

use std::fmt;

use crate::diagnostic::{Diagnostic, Severity};

/// Why there is no plan: every diagnostic, in file order.
/// Why there is no plan: every diagnostic, in file order.
#[derive(Debug)]
pub struct Refusal {
    /// At least one of them is an error.
    pub diagnostics: Vec<Diagnostic>,
}

/// One error per line; warnings and notes are left out.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.diagnostics.iter().filter(|found| found.severity() == Severity::Error);
        let lines: Vec<String> = errors.map(Diagnostic::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Refusal {}
