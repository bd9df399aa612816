//! The keys of mappings, and the mistakes that any of them may have.

use std::collections::HashMap;

use super::super::tree::{Node, Value, is_merge};
use super::collector::Collector;
use crate::diagnostic::words::excerpt;
use crate::diagnostic::{Code, Diagnostic};

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

/// The keys of one mapping seen so far.
#[derive(Default)]
pub(super) struct Seen<'n> {
    texts: HashMap<&'n str, &'n Node>,
    others: HashMap<String, &'n Node>,
}

impl<'n> Seen<'n> {
    /// Whether a key occurred before; reports it if so.
    pub(super) fn repeats(&mut self, key: &'n Node, collector: &mut Collector<'_>) -> bool {
        let first = match key_name(key) {
            Some(name) => *self.texts.entry(name).or_insert(key),
            None => *self.others.entry(format!("{:?}", key.value)).or_insert(key),
        };
        if std::ptr::eq(first, key) {
            return false;
        }
        let name =
            key_name(key).map_or_else(|| "the same key".to_owned(), |name| format!("`{}`", excerpt(name)));
        let twice =
            Diagnostic::new(Code::Syntax, format!("duplicate mapping key {name} is not allowed here"));
        let twice =
            key.visible().label_at_definition(twice, "again").label(first.visible().span, "first here");
        collector.push(twice.help("remove one of them"));
        true
    }
}

/// Whether a key is a `<<` that merging left in place; reports it if so.
pub(super) fn left_merge(key: &Node, value: &Node, collector: &mut Collector<'_>) -> bool {
    if !is_merge(key, collector.text) {
        return false;
    }
    let (message, help) = match &value.value {
        // Merging empties the mappings that it takes from.
        Value::Map(_) => ("a mapping has two `<<`".to_owned(), "merge them in one list: `<<: [*a, *b]`"),
        Value::List(items) if items.iter().all(|item| matches!(item.value, Value::Map(_))) => {
            ("a mapping has two `<<`".to_owned(), "merge all in one list: `<<: [*a, *b, *c]`")
        }
        Value::List(_) => {
            ("`<<` lists something that is not a mapping".to_owned(), "merge mappings only: `<<: [*a, *b]`")
        }
        other => (
            format!("`<<` merges {}, not a mapping", other.kind()),
            "anchor a mapping (`x-gain: &gain {…}`) and merge it: `<<: *gain`",
        ),
    };
    let place = if matches!(value.value, Value::Map(_)) { key.visible() } else { value.visible() };
    collector.push(place.label_at_definition(Diagnostic::new(Code::Syntax, message), "").help(help));
    true
}

/// The mistake of a field without a value.
pub(super) fn no_value(key: &Node, value: &Node, name: &str) -> Diagnostic {
    let missing = Diagnostic::new(Code::MissingField, format!("`{name}` has no value"));
    if value.span.is_empty() {
        key.label_at_definition(missing, "")
    } else {
        value.label_at_definition(missing, "")
    }
}

/// The mistake of a field that does not exist.
pub(super) fn unknown_field(key: &Node, text: &str) -> Diagnostic {
    let written = match &key.value {
        // The span of a list or mapping used as a key is empty.
        Value::List(_) | Value::Map(_) => None,
        _ => key_name(key).or_else(|| text.get(key.span.clone())),
    };
    let message = match written.filter(|name| !name.is_empty()) {
        Some(name) => format!("unknown field `{}`", excerpt(name)),
        None => format!("{} cannot name a field", key.value.kind()),
    };
    key.visible().label_at_definition(Diagnostic::new(Code::UnknownField, message), "")
}
