//! Gathering a file's mistakes: in file order, each once.

use std::collections::HashMap;

use super::{
    Spanned,
    node::{Node, Value},
};
use crate::diagnostic::{Code, Diagnostic, Span, line_starts};

/// Mistakes beyond so many are only counted: a file with more has one cause, or was made to be a burden.
const MOST: usize = 200;
/// A mistake that is used through more aliases is labelled at the first of them.
const MOST_LABELS: usize = 8;

/// What is said at the place where a value is written that is used elsewhere.
pub const WRITTEN: &str = "written here";

/// The mistakes found so far, and the text they are in.
pub(super) struct Report<'t> {
    pub(super) text: &'t str,
    /// Where lines begin.
    lines: Vec<usize>,
    /// Mistakes that were only counted.
    more: usize,
    found: Vec<Diagnostic>,
    seen: HashMap<(Code, Span, String), usize>,
}

impl<'t> Report<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let lines = line_starts(text).collect();
        Self { text, lines, more: 0, found: Vec::new(), seen: HashMap::new() }
    }

    /// The 1-based line that a byte is on.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset).max(1)
    }

    /// Whether mistakes are only counted from here on, so that a help is not worth its while.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MOST
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        // An anchored value that is used twice is one mistake in two places.
        if let Some(label) = diagnostic.labels.first() {
            let place = (diagnostic.code, label.span.clone(), diagnostic.message.clone());
            let next = self.found.len();
            let at = if next < MOST {
                *self.seen.entry(place).or_insert(next)
            } else {
                self.seen.get(&place).copied().unwrap_or(next)
            };
            if let Some(other) = self.found.get_mut(at) {
                for label in diagnostic.labels {
                    if other.labels.len() < MOST_LABELS && !other.labels.contains(&label) {
                        other.labels.push(label);
                    }
                }
                return;
            }
        }
        if self.found.len() < MOST {
            self.found.push(diagnostic);
        } else {
            self.more += 1;
        }
    }

    /// A value of the wrong type.
    pub(super) fn bad_value(&mut self, node: &Node, message: String, label: &str, help: String) {
        self.push(node.label_at_definition(Diagnostic::new(Code::BadValue, message), label).help(help));
    }

    /// The mistakes in file order; those without a place come first.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span.start));
        if let Some(last) = self.found.last_mut()
            && self.more > 0
        {
            let help = last.help.take().map_or_else(String::new, |help| help + "; ");
            last.help = Some(format!("{help}{} more mistakes are not shown", self.more));
        }
        self.found
    }
}

impl<T> Spanned<T> {
    /// Labels a diagnostic with this value: where it is used, and where it is written if an alias or a merge key stands
    /// for it.
    #[must_use]
    pub fn label_at_use(&self, diagnostic: Diagnostic, message: impl Into<String>) -> Diagnostic {
        match &self.alias {
            Some(alias) => diagnostic.label(alias.clone(), message).label(self.span.clone(), WRITTEN),
            None => diagnostic.label(self.span.clone(), message),
        }
    }

    /// The same the other way round, for a value that is wrong as it is written, wherever it is used.
    pub(super) fn label_at_definition(
        &self,
        diagnostic: Diagnostic,
        message: impl Into<String>,
    ) -> Diagnostic {
        let diagnostic = diagnostic.label(self.span.clone(), message);
        match &self.alias {
            Some(alias) => diagnostic.label(alias.clone(), "used here"),
            None => diagnostic,
        }
    }

    /// Where it is used.
    pub(super) fn used(&self) -> &Span {
        self.alias.as_ref().unwrap_or(&self.span)
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
