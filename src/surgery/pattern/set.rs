//! [`PatternSet`]: many patterns over many keys, each key looked at once.

use globset::{GlobSet, GlobSetBuilder};

use super::Pattern;

/// More patterns than these are not compiled together: the memory that their automaton may take grows with their number.
const MOST_TOGETHER: usize = 64;

/// Patterns compiled together.
#[derive(Debug, Clone)]
pub struct PatternSet {
    patterns: Vec<Pattern>,
    /// Absent when the patterns are too large to be compiled together; then each is run by itself.
    set: Option<GlobSet>,
}

impl PatternSet {
    /// Compiles patterns; their indices are their order here.
    #[must_use]
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p Pattern>) -> Self {
        let patterns: Vec<Pattern> = patterns.into_iter().cloned().collect();
        if patterns.len() > MOST_TOGETHER {
            return Self { set: None, patterns };
        }
        let mut builder = GlobSetBuilder::new();
        for pattern in &patterns {
            builder.add(pattern.to_glob());
        }
        Self { set: builder.build().ok(), patterns }
    }

    /// Fills `into` with the indices, ascending, of the patterns that match the whole key.
    pub fn matches_into(&self, key: &str, into: &mut Vec<usize>) {
        into.clear();
        match &self.set {
            Some(set) if is_plain(key) => set.matches_into(key, into),
            _ => into.extend((0..self.patterns.len()).filter(|&at| self.patterns[at].matches(key))),
        }
    }

    /// The indices, ascending, of the patterns that match the whole key.
    #[must_use]
    pub fn matches(&self, key: &str) -> Vec<usize> {
        let mut found = Vec::new();
        self.matches_into(key, &mut found);
        found
    }
}

/// globset matches paths, byte by byte: a key of other signs than a tensor's name usually has goes to our own matcher.
fn is_plain(key: &str) -> bool {
    !key.ends_with('.') && key.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/')
}
