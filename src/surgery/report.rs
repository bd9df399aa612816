//! Gathering a file's mistakes: in file order, each once.

use std::collections::HashMap;

use super::{
    Spanned,
    node::{Node, Value},
};
use crate::diagnostic::{Code, Diagnostic, Span};

/// The mistakes found so far, and the text they are in.
pub(super) struct Report<'t> {
    pub(super) text: &'t str,
    found: Vec<Diagnostic>,
    seen: HashMap<(Code, Span, String), usize>,
}

impl<'t> Report<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, found: Vec::new(), seen: HashMap::new() }
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        // An anchored value that is used twice is one mistake in two places.
        if let Some(label) = diagnostic.labels.first() {
            let place = (diagnostic.code, label.span.clone(), diagnostic.message.clone());
            let at = *self.seen.entry(place).or_insert(self.found.len());
            if let Some(other) = self.found.get_mut(at) {
                for label in diagnostic.labels {
                    if !other.labels.contains(&label) {
                        other.labels.push(label);
                    }
                }
                return;
            }
        }
        self.found.push(diagnostic);
    }

    /// A value of the wrong type.
    pub(super) fn bad_value(&mut self, node: &Node, message: String, label: &str, help: String) {
        self.push(node.mark(Diagnostic::new(Code::BadValue, message), label).help(help));
    }

    /// The mistakes in file order; those without a place come first.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span.start));
        self.found
    }
}

impl<T> Spanned<T> {
    /// Labels a diagnostic with this value: where it is written, and where it is used if an alias stands for it.
    #[must_use]
    pub fn mark(&self, diagnostic: Diagnostic, message: impl Into<String>) -> Diagnostic {
        let diagnostic = diagnostic.label(self.span.clone(), message);
        match &self.alias {
            Some(alias) => diagnostic.label(alias.clone(), "used here"),
            None => diagnostic,
        }
    }

    /// The same place with another value.
    pub(super) fn with<U>(&self, value: U) -> Spanned<U> {
        Spanned { value, span: self.span.clone(), alias: self.alias.clone() }
    }
}

impl Node {
    /// The same node with a span that shows something: a block mapping or list has none of its own, so its first
    /// entry stands for it.
    pub(super) fn visible(&self) -> Spanned<()> {
        let first = match &self.value {
            Value::Map(pairs) => pairs.first().map(|(key, _)| key),
            Value::List(items) => items.first(),
            _ => None,
        };
        match first {
            Some(first) if self.span.is_empty() => first.visible(),
            _ => self.with(()),
        }
    }
}
