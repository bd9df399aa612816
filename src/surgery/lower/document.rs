//! The document: `version`, `operations`, and keys that begin with `x-`.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::language::Field;
use super::super::operation::{Fragment, Operation};
use super::super::tree::{Node, Value};
use super::collector::Collector;
use super::mapping_keys::{Seen, is_named, key_name, left_merge, no_value, unknown_field};
use super::operation::{Lowered, operation};
use crate::diagnostic::{Code, Diagnostic, did_you_mean, nearest};

/// The fields of the document.
const TOP: [&str; 2] = ["version", "operations"];

/// A lowered document.
pub(in crate::surgery) struct Document {
    /// The operations that can be planned, in file order.
    pub(in crate::surgery) operations: Vec<Operation>,
    /// What is readable of the others.
    pub(in crate::surgery) fragments: Vec<Fragment>,
    /// The mistakes, in file order.
    pub(in crate::surgery) diagnostics: Vec<Diagnostic>,
}

/// Lowers a document. `text` is its source, `dir` the directory that donors are resolved against.
pub(in crate::surgery) fn lower(root: &Node, text: &str, dir: &Path) -> Document {
    let mut collector = Collector::new(text);
    let mut document = Document { operations: Vec::new(), fragments: Vec::new(), diagnostics: Vec::new() };
    for lowered in entries(root, dir, &mut collector) {
        match lowered {
            Lowered::Operation(operation) => document.operations.push(*operation),
            Lowered::Fragment(fragment) => document.fragments.push(*fragment),
        }
    }
    document.diagnostics = collector.finish();
    document
}

/// Lowers the entries of `operations`, after checking the document's own fields.
fn entries(root: &Node, dir: &Path, collector: &mut Collector<'_>) -> Vec<Lowered> {
    let pairs = match &root.value {
        Value::Map(pairs) => pairs,
        Value::Null => {
            let empty = Diagnostic::new(Code::MissingField, "the file has no `version`");
            let empty = empty.label(0..0, "");
            collector.push(empty.help("begin with `version: 1` and `operations: []`"));
            return Vec::new();
        }
        other => {
            let message = format!("a surgery file is a mapping, not {}", other.kind());
            let help = match other {
                Value::List(_) => "put `version: 1` and `operations:` above the list",
                Value::Text(text) if text.contains('=') => {
                    "begin with `version: 1` and `operations:`, with colons between names and values"
                }
                _ => "begin with `version: 1` and `operations:`",
            };
            collector.bad_value(&root.visible().with(Value::Null), message, "", help.to_owned());
            return Vec::new();
        }
    };
    if let Some(refusal) = unsupported_version(pairs, collector.text) {
        collector.push(refusal);
        return Vec::new();
    }
    let fields = top_fields(pairs, collector);
    for name in TOP {
        if !fields.contains_key(name) {
            let mut missing = Diagnostic::new(Code::MissingField, format!("the file has no `{name}`"));
            let place = pairs.first().map_or_else(|| root.visible(), |(key, _)| key.visible());
            missing = place.label_at_definition(missing, format!("no `{name}` in this mapping"));
            collector.push(missing.help(top_help(name)));
        }
    }
    match fields.get("operations") {
        Some((key, list)) => {
            let stray = pairs.iter().filter_map(|(key, _)| Field::named(key_name(key)?)).collect();
            operations(key, list, (dir, stray), collector)
        }
        None => Vec::new(),
    }
}

/// The refusal of a `version` other than the integer 1. [`top_fields`] reports a null one.
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
        Value::Text(_) => "write `version: 1`, without quotes",
        Value::Float(_) => "write `version: 1`, a whole number",
        _ => "write `version: 1`, the only version of the format",
    };
    Some(
        version
            .visible()
            .label_at_definition(Diagnostic::new(Code::UnsupportedVersion, message), "")
            .help(help),
    )
}

/// The top-level fields that are there, or that a misspelled one means. Reports repeated, unknown and null ones.
fn top_fields<'n>(
    pairs: &'n [(Node, Node)],
    collector: &mut Collector<'_>,
) -> BTreeMap<&'static str, &'n (Node, Node)> {
    let mut fields = BTreeMap::new();
    let mut seen = Seen::default();
    let absent = TOP.map(|top| (top, !pairs.iter().any(|(key, _)| is_named(key, top))));
    for pair in pairs {
        let (key, value) = pair;
        let name = key_name(key);
        if left_merge(key, value, collector) {
            continue;
        }
        if seen.repeats(key, collector) || name.is_some_and(|name| name.starts_with("x-")) {
            continue;
        }
        if let Some(top) = name.and_then(|name| TOP.into_iter().find(|top| *top == name)) {
            fields.insert(top, pair);
            if value.value == Value::Null {
                collector.push(no_value(key, value, top).help(top_help(top)));
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
                "indent it like the fields of the operation above; it belongs to an operation".to_owned()
            } else {
                let help =
                    "a file has the fields `version` and `operations`, and ignores keys that begin with `x-`";
                did_you_mean(near, help)
            };
            collector.push(unknown_field(key, collector.text).help(help));
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

/// Lowers the list. `stray` holds fields of operations at the top level: they probably belong to the last operation.
fn operations(
    key: &Node,
    list: &Node,
    (dir, stray): (&Path, Vec<Field>),
    collector: &mut Collector<'_>,
) -> Vec<Lowered> {
    match &list.value {
        Value::List(entries) => {
            let lower = |(index, entry): (usize, &Node)| {
                let stray = if index + 1 == entries.len() { stray.as_slice() } else { &[] };
                operation(index, entry, dir, stray, collector)
            };
            entries.iter().enumerate().filter_map(lower).collect()
        }
        Value::Null => Vec::new(),
        other => {
            let message = format!("`operations` is {}, not a list", other.kind());
            let help = match other {
                Value::Map(_) => "write `- ` before each operation",
                _ => "write a list of operations, or `[]` for no change",
            };
            let place = if list.span.is_empty() { key } else { list };
            collector.bad_value(place, message, "", help.to_owned());
            Vec::new()
        }
    }
}
