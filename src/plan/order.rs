//! In which order, and how often, diagnostics are told.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::limit;
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::WRITTEN;

/// File order: by the first place in the YAML; what has none (the model's own) comes first. A mistake that is written once
/// and used in several places is one. And not too many.
pub(super) fn finish(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span.start));
    let mut first: HashMap<(Code, String, usize), usize> = HashMap::new();
    let mut kept: Vec<Diagnostic> = Vec::with_capacity(diagnostics.len());
    for diagnostic in diagnostics.drain(..) {
        let written = match diagnostic.labels.as_slice() {
            [_, written] if written.message == WRITTEN => written.span.start,
            _ => {
                kept.push(diagnostic);
                continue;
            }
        };
        match first.entry((diagnostic.code, diagnostic.message.clone(), written)) {
            Entry::Occupied(known) => {
                let labels = &mut kept[*known.get()].labels;
                if labels.len() < MOST_USES {
                    labels.extend(diagnostic.labels.into_iter().take(1));
                }
            }
            Entry::Vacant(vacant) => {
                vacant.insert(kept.len());
                kept.push(diagnostic);
            }
        }
    }
    *diagnostics = kept;
    limit::shorten(diagnostics);
}

/// A mistake that is used in more places is labelled at the first of them.
const MOST_USES: usize = 8;
