//! Diagnostics for machines: a stable contract; fields may be added, never renamed.
//!
//! `line` and `column` are 1-based; columns count characters (Unicode scalar values). `end_line` and `end_column` are
//! exclusive, so that an empty label ends where it begins.

use serde_json::{Value, json};

use super::position::Lines;
use super::{Diagnostic, Label, Source};

/// One object per diagnostic: `code`, `severity`, `message`, `help` (or null) and `labels`, the primary one first.
/// Without a source there are no labels.
#[must_use]
pub fn json(diagnostics: &[Diagnostic], source: Option<&Source>) -> Vec<Value> {
    let lines = source.map(|source| (source.path.to_string_lossy(), Lines::new(&source.text)));
    let labels = |diagnostic: &Diagnostic| -> Vec<Value> {
        let Some((file, lines)) = &lines else { return Vec::new() };
        let label = |label: &Label| {
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
