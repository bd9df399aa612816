//! The keys of mappings, and what may be wrong with any of them.

use std::collections::HashMap;

use super::merge::is_merge;
use super::node::{Node, Value};
use super::report::Report;
use crate::diagnostic::{Code, Diagnostic, words};

/// A key's text, if it is one.
pub(super) fn key_name(key: &Node) -> Option<&str> {
    match &key.value {
        Value::Text(name) => Some(name),
        _ => None,
    }
}

/// Whether a key is this text.
pub(super) fn is_named(key: &Node, name: &str) -> bool {
    key_name(key) == Some(name)
}

/// The keys of one mapping that were met so far.
#[derive(Default)]
pub(super) struct Seen<'n> {
    texts: HashMap<&'n str, &'n Node>,
    others: HashMap<String, &'n Node>,
}

impl<'n> Seen<'n> {
    /// Whether a key was met already; if so, that is reported.
    pub(super) fn repeats(&mut self, key: &'n Node, report: &mut Report<'_>) -> bool {
        let first = match key_name(key) {
            Some(name) => *self.texts.entry(name).or_insert(key),
            None => *self.others.entry(format!("{:?}", key.value)).or_insert(key),
        };
        if std::ptr::eq(first, key) {
            return false;
        }
        let name = key_name(key)
            .map_or_else(|| "the same key".to_owned(), |name| format!("`{}`", words::excerpt(name)));
        let twice =
            Diagnostic::new(Code::Syntax, format!("duplicate mapping key {name} is not allowed here"));
        let twice =
            key.visible().label_at_definition(twice, "again").label(first.visible().span, "first here");
        report.push(twice.help("keep one of the two"));
        true
    }
}

/// Whether a key is a `<<` that could not be taken as a merge, or not as the only one; that is reported.
pub(super) fn left_merge(key: &Node, value: &Node, report: &mut Report<'_>) -> bool {
    if !is_merge(key, report.text) {
        return false;
    }
    let (message, help) = match &value.value {
        // What was merged from it is gone from it.
        Value::Map(_) => ("a mapping has two `<<`".to_owned(), "name them in one list: `<<: [*a, *b]`"),
        Value::List(items) if items.iter().all(|item| matches!(item.value, Value::Map(_))) => {
            ("a mapping has two `<<`".to_owned(), "name all in one list: `<<: [*a, *b, *c]`")
        }
        Value::List(_) => {
            ("`<<` lists something that is no mapping".to_owned(), "merge mappings only: `<<: [*a, *b]`")
        }
        other => (
            format!("`<<` merges {}, not a mapping", other.kind()),
            "anchor a mapping (`x-gain: &gain {…}`) and merge it: `<<: *gain`",
        ),
    };
    let place = if matches!(value.value, Value::Map(_)) { key.visible() } else { value.visible() };
    report.push(place.label_at_definition(Diagnostic::new(Code::Syntax, message), "").help(help));
    true
}

/// A field that stands there without a value.
pub(super) fn no_value(key: &Node, value: &Node, name: &str) -> Diagnostic {
    let missing = Diagnostic::new(Code::MissingField, format!("`{name}` has no value"));
    if value.span.is_empty() {
        key.label_at_definition(missing, "")
    } else {
        value.label_at_definition(missing, "")
    }
}

/// A field that nothing has.
pub(super) fn unknown(key: &Node, text: &str) -> Diagnostic {
    let written = match &key.value {
        // The span of a list or mapping that is a key ends where it begins.
        Value::List(_) | Value::Map(_) => None,
        _ => key_name(key).or_else(|| text.get(key.span.clone())),
    };
    let message = match written.filter(|name| !name.is_empty()) {
        Some(name) => format!("unknown field `{}`", words::excerpt(name)),
        None => format!("unknown field: {} cannot name one", key.value.kind()),
    };
    key.visible().label_at_definition(Diagnostic::new(Code::UnknownField, message), "")
}
