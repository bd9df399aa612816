//! From the tree to [`Operation`]s: the document. Which fields an operation may have is [`entry`](super::entry)'s
//! concern, and what their values may be that of [`values`](super::values).
//!
//! Every mistake is recorded and lowering goes on, so that one run names them all; what follows from a mistake already
//! named (a field that is missing because its name is misspelt) is not named again.

use std::collections::BTreeMap;
use std::path::Path;

use super::SurgeryFile;
use super::entry::{Lowered, operation};
use super::fields::Field;
use super::keys::{Seen, is_named, key_name, left_merge, no_value, unknown};
use super::node::{Node, Value};
use super::report::Report;
use crate::diagnostic::{Code, Diagnostic, did_you_mean, nearest};

/// The fields of the document.
const TOP: [&str; 2] = ["version", "operations"];

/// Lowers a document into its file: operations, and everything wrong with them.
pub(super) fn lower(root: &Node, file: &mut SurgeryFile) {
    let text = file.source.text.clone();
    let mut report = Report::new(&text);
    for lowered in document(root, &file.dir, &mut report) {
        match lowered {
            Lowered::Operation(operation) => file.operations.push(*operation),
            Lowered::Fragment(fragment) => file.fragments.push(*fragment),
        }
    }
    file.diagnostics = report.finish();
}

fn document(root: &Node, dir: &Path, report: &mut Report<'_>) -> Vec<Lowered> {
    let pairs = match &root.value {
        Value::Map(pairs) => pairs,
        Value::Null => {
            let empty = Diagnostic::new(Code::MissingField, "the file has no `version`");
            let empty = empty.label(0..0, "");
            report.push(empty.help("begin with `version: 1` and `operations: []`"));
            return Vec::new();
        }
        other => {
            let message = format!("a surgery file is a mapping, not {}", other.kind());
            let help = match other {
                Value::List(_) => "put `version: 1` and `operations:` above the list",
                Value::Text(text) if text.contains('=') => {
                    "begin with `version: 1` and `operations:`: YAML has colons between names and values"
                }
                _ => "begin with `version: 1` and `operations:`",
            };
            report.bad_value(&root.visible().with(Value::Null), message, "", help.to_owned());
            return Vec::new();
        }
    };
    if let Some(refusal) = unsupported_version(pairs, report.text) {
        report.push(refusal);
        return Vec::new();
    }
    let fields = top_fields(pairs, report);
    for name in TOP {
        if !fields.contains_key(name) {
            let mut missing = Diagnostic::new(Code::MissingField, format!("the file has no `{name}`"));
            let place = pairs.first().map_or_else(|| root.visible(), |(key, _)| key.visible());
            missing = place.label_at_definition(missing, format!("no `{name}` in this mapping"));
            report.push(missing.help(top_help(name)));
        }
    }
    match fields.get("operations") {
        Some((key, list)) => {
            let stray = pairs.iter().filter_map(|(key, _)| Field::named(key_name(key)?)).collect();
            operations(key, list, (dir, stray), report)
        }
        None => Vec::new(),
    }
}

/// A `version` that is there but is not the integer 1. Null is for [`top_fields`] to report.
fn unsupported_version(pairs: &[(Node, Node)], text: &str) -> Option<Diagnostic> {
    let (_, version) = pairs.iter().find(|(key, _)| is_named(key, "version"))?;
    if matches!(version.value, Value::Int(1) | Value::Null) {
        return None;
    }
    let written =
        text.get(version.span.clone()).filter(|written| written.len() < 40 && !written.contains('\n'));
    let message = match (&version.value, written) {
        (Value::List(_) | Value::Map(_), _) | (_, None | Some("")) => {
            format!("`version` is {}, not the integer 1", version.value.kind())
        }
        (_, Some(written)) => format!("version {written} is not supported"),
    };
    let help = match &version.value {
        Value::Text(_) => "write `version: 1`, a number without quotes",
        Value::Float(_) => "write `version: 1`, a whole number",
        _ => "this program reads `version: 1`",
    };
    Some(
        version
            .visible()
            .label_at_definition(Diagnostic::new(Code::UnsupportedVersion, message), "")
            .help(help),
    )
}

/// Reports repeated, unknown and null top-level fields; gives those that are there, or were meant by a misspelt one.
fn top_fields<'n>(
    pairs: &'n [(Node, Node)],
    report: &mut Report<'_>,
) -> BTreeMap<&'static str, &'n (Node, Node)> {
    let mut fields = BTreeMap::new();
    let mut seen = Seen::default();
    let absent = TOP.map(|top| (top, !pairs.iter().any(|(key, _)| is_named(key, top))));
    for pair in pairs {
        let (key, value) = pair;
        let name = key_name(key);
        if left_merge(key, value, report) {
            continue;
        }
        if seen.repeats(key, report) || name.is_some_and(|name| name.starts_with("x-")) {
            continue;
        }
        if let Some(top) = name.and_then(|name| TOP.into_iter().find(|top| *top == name)) {
            fields.insert(top, pair);
            if value.value == Value::Null {
                report.push(no_value(key, value, top).help(top_help(top)));
            }
        } else {
            let candidates = absent.iter().filter(|(_, absent)| *absent).map(|(top, _)| *top);
            let near = name.and_then(|name| match name {
                "ops" | "steps" | "edits" | "surgery" => candidates.clone().find(|top| *top == "operations"),
                _ => nearest(name, candidates),
            });
            if let Some(near) = near {
                fields.entry(near).or_insert(pair);
            }
            let help = if name.and_then(Field::named).is_some() {
                "it belongs to an operation: indent it as the fields of the operation above, under `operations`"
                    .to_owned()
            } else {
                let help = "a file has `version` and `operations`; keys that begin with `x-` are ignored";
                did_you_mean(near, help)
            };
            report.push(unknown(key, report.text).help(help));
        }
    }
    fields
}

fn top_help(name: &str) -> &'static str {
    match name {
        "version" => "write `version: 1`",
        _ => "write `operations:` and a list, or `operations: []` for no change",
    }
}

/// Lowers the list. `stray` are the fields of operations that stand beside it: the last operation may lack them.
fn operations(
    key: &Node,
    list: &Node,
    (dir, stray): (&Path, Vec<Field>),
    report: &mut Report<'_>,
) -> Vec<Lowered> {
    match &list.value {
        Value::List(entries) => {
            let lower = |(index, entry): (usize, &Node)| {
                let stray = if index + 1 == entries.len() { stray.as_slice() } else { &[] };
                operation(index, entry, dir, stray, report)
            };
            entries.iter().enumerate().filter_map(lower).collect()
        }
        Value::Null => Vec::new(),
        other => {
            let message = format!("`operations` is {}, not a list", other.kind());
            let help = match other {
                Value::Map(_) => "put `- ` in front of each operation",
                _ => "write a list of operations, or `[]` for no change",
            };
            let place = if list.span.is_empty() { key } else { list };
            report.bad_value(place, message, "", help.to_owned());
            Vec::new()
        }
    }
}
