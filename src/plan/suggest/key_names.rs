//! [`KeyNames`]: the names of a checkpoint's keys, searched for what a pattern may mean.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::checkpoint::TensorIndex;
use crate::surgery::{Matcher, Pattern};

/// Maximum number of distinct names that are compared with a pattern.
pub(super) const MAX_TEMPLATES: usize = 4096;
/// Longer patterns are neither compared by edit distance nor rewritten.
pub(super) const MAX_COMPARED_LENGTH: usize = 400;

/// The names of a checkpoint's keys. Templates are made when the first suggestion needs them.
#[derive(Debug)]
pub(in crate::plan) struct KeyNames<'b> {
    pub(super) index: &'b TensorIndex,
    templates: OnceLock<Vec<String>>,
}

impl<'b> KeyNames<'b> {
    pub(in crate::plan) fn new(index: &'b TensorIndex) -> Self {
        Self { index, templates: OnceLock::new() }
    }

    /// The index itself.
    pub(in crate::plan) fn index(&self) -> &'b TensorIndex {
        self.index
    }

    /// The keys with numbers replaced by `*`, each once: a model of any depth has few.
    pub(super) fn templates(&self) -> &[String] {
        self.templates.get_or_init(|| {
            let entries = self.index.entries();
            let distinct: BTreeSet<String> = entries
                .par_chunks(8192)
                .map(|chunk| chunk.iter().map(|(key, _)| template(key.as_str())).collect::<BTreeSet<_>>())
                .reduce(BTreeSet::new, |mut a, mut b| {
                    a.append(&mut b);
                    a
                });
            distinct.into_iter().take(MAX_TEMPLATES).collect()
        })
    }

    /// Whether any key matches, by a search that stops at the first.
    pub(in crate::plan) fn any(&self, pattern: &Pattern) -> bool {
        let matcher = Matcher::new(pattern);
        self.keys(&matcher).any(|key| matcher.matches(key))
    }

    pub(super) fn count(&self, pattern: &Pattern) -> usize {
        let matcher = Matcher::new(pattern);
        self.keys(&matcher).filter(|key| matcher.matches(key)).count()
    }

    /// The keys that begin as a pattern does.
    pub(super) fn keys(&self, matcher: &Matcher) -> impl Iterator<Item = &'b str> + use<'b> {
        self.index.entries()[self.index.with_prefix(matcher.head())].iter().map(|(key, _)| key.as_str())
    }
}

/// The names closest to a pattern, as patterns themselves.
pub(super) fn nearest(names: &KeyNames<'_>, pattern: &str) -> Vec<String> {
    if pattern.len() > MAX_COMPARED_LENGTH {
        return Vec::new();
    }
    let wanted = template(pattern);
    let mut scored: Vec<(usize, &String)> = names
        .templates()
        .par_iter()
        .filter(|name| name.len() <= MAX_COMPARED_LENGTH)
        .map(|name| (strsim::levenshtein(&wanted, name), name))
        .filter(|(distance, _)| *distance <= 2.max(wanted.len() / 4))
        .collect();
    scored.sort_unstable();
    let best = scored.first().map_or(0, |(distance, _)| *distance);
    scored.retain(|(distance, _)| *distance <= best + 2);
    scored.into_iter().take(2).map(|(_, name)| name.clone()).collect()
}

/// A key with its numbers replaced by `*`.
fn template(key: &str) -> String {
    let component = |part: &str| {
        if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) {
            "*".to_owned()
        } else {
            part.to_owned()
        }
    };
    key.split('.').map(component).collect::<Vec<_>>().join(".")
}
