//! The order of diagnostics, without repetitions.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::limits;
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::WRITTEN;

/// Maximum number of uses of one mistake that are labelled.
const MAX_USES: usize = 8;

/// Sorts by the first place in the YAML (those of the model, which have none, come first), joins a mistake that is written
/// once and used in several places, and limits the number.
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
                if labels.len() < MAX_USES {
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
    limits::shorten(diagnostics);
}
