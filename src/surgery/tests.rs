//! Reading surgery files.

mod hostile;
mod operations;
mod places;
mod structure;
mod values;

use std::path::Path;

use super::*;
use crate::diagnostic::{Code, Severity};

fn parse(text: &str) -> SurgeryFile {
    SurgeryFile::parse(Path::new("dir/surgery.yaml"), text.as_bytes())
}

/// The operation of a file that has one and no mistake.
#[track_caller]
fn accepted(fields: &str) -> Operation {
    let mut file = parse(&format!("version: 1\noperations:\n  - {{{fields}}}\n"));
    assert_eq!(file.diagnostics, [], "{fields}");
    assert_eq!(file.operations.len(), 1);
    file.operations.remove(0)
}

/// Every mistake as `code: text at its first label`.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let file = parse(text);
    let found: Vec<String> = file
        .diagnostics
        .iter()
        .map(|found| {
            let place = found.labels.first().map_or("", |label| &file.source.text[label.span.clone()]);
            format!("{}: {place}", found.code.name())
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[track_caller]
fn check_operation(fields: &str, expected: &[&str]) {
    check(&format!("version: 1\noperations:\n  - {{{fields}}}\n"), expected);
}

#[track_caller]
fn check_help(text: &str, help: &str) {
    let file = parse(text);
    let given = file.diagnostics.first().and_then(|found| found.help.clone()).unwrap_or_default();
    assert!(given.contains(help), "{given:?} lacks {help:?}");
}
