//! [`Collector`]: a file's mistakes, each once, in file order.

use std::collections::HashMap;

use super::super::tree::Node;
use crate::diagnostic::{Code, Diagnostic, Span, line_starts};

/// Mistakes that are reported; more are only counted, because they share a cause or the file is hostile.
const MAX_MISTAKES: usize = 200;

/// Labels of one mistake, which aliases repeat in other places.
const MAX_LABELS: usize = 8;

/// The mistakes found so far, and the text that they are in.
pub(super) struct Collector<'t> {
    pub(super) text: &'t str,
    /// The offset at which each line begins.
    lines: Vec<usize>,
    /// How many mistakes were only counted.
    more: usize,
    found: Vec<Diagnostic>,
    /// Where in `found` a mistake is.
    seen: HashMap<(Code, Span, String), usize>,
}

impl<'t> Collector<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let lines = line_starts(text).collect();
        Self { text, lines, more: 0, found: Vec::new(), seen: HashMap::new() }
    }

    /// The 1-based line of a byte.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset).max(1)
    }

    /// Whether further mistakes are only counted, so that computing their help is wasted.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MAX_MISTAKES
    }

    /// Records a mistake.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        // A mistake in an anchored value is one mistake in several places.
        if let Some(label) = diagnostic.labels.first() {
            let place = (diagnostic.code, label.span.clone(), diagnostic.message.clone());
            let next = self.found.len();
            let at = if next < MAX_MISTAKES {
                *self.seen.entry(place).or_insert(next)
            } else {
                self.seen.get(&place).copied().unwrap_or(next)
            };
            if let Some(other) = self.found.get_mut(at) {
                for label in diagnostic.labels {
                    if other.labels.len() < MAX_LABELS && !other.labels.contains(&label) {
                        other.labels.push(label);
                    }
                }
                return;
            }
        }
        if self.found.len() < MAX_MISTAKES {
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
