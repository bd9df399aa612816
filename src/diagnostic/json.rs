//! Diagnostics for machines: a stable contract; fields may be added, never renamed.
//!
//! `line` and `column` count from 1, columns in characters (Unicode scalar values). `end_line` and `end_column` are the
//! place just behind the last character, so that an empty label ends where it begins.

use serde_json::{Value, json};

use super::position::Lines;
use super::{Diagnostic, Severity, Source};

/// One object a diagnostic: `code`, `severity`, `message`, `help` (or null) and `labels`, the primary one first.
/// Labels need the source; without it there are none.
#[must_use]
pub fn json(diagnostics: &[Diagnostic], source: Option<&Source>) -> Vec<Value> {
    let lines = source.map(|source| (source.path.to_string_lossy(), Lines::new(&source.text)));
    let labels = |diagnostic: &Diagnostic| -> Vec<Value> {
        let Some((file, lines)) = &lines else { return Vec::new() };
        let label = |label: &super::Label| {
            let (start, end) = lines.range(&label.span);
            json!({
                "file": file,
                "line": start.line,
                "column": start.column,
                "end_line": end.line,
                "end_column": end.column,
                "message": label.message,
            })
        };
        diagnostic.labels.iter().map(label).collect()
    };
    let object = |diagnostic: &Diagnostic| {
        json!({
            "code": diagnostic.code.to_string(),
            "severity": diagnostic.severity().name(),
            "message": diagnostic.message,
            "help": diagnostic.help,
            "labels": labels(diagnostic),
        })
    };
    diagnostics.iter().map(object).collect()
}

impl Severity {
    /// `error`, `warning` or `advice`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Advice => "advice",
        }
    }
}
