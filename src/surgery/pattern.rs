//! [`Pattern`]: a glob over whole keys; [`Captures`] and [`Template`] for `replace`.

use crate::diagnostic::Span;

/// A checked glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
}

/// Why a pattern is refused, with the place inside the pattern (byte offsets in its text).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// Bytes within the pattern.
    pub span: Span,
    /// A lowercase fragment.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// What each `*` of a pattern matched, left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captures<'k>(pub Vec<&'k str>);

/// `source_key`: text with holes for captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
}

impl Pattern {
    /// Checks a glob.
    ///
    /// # Errors
    /// The first thing wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        todo!()
    }

    /// As written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number of `*`.
    #[must_use]
    pub fn wildcards(&self) -> usize {
        todo!()
    }

    /// Whether the whole key matches.
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        todo!()
    }

    /// What each `*` matched, leftmost-shortest; `None` when the key does not match.
    #[must_use]
    pub fn captures<'k>(&self, key: &'k str) -> Option<Captures<'k>> {
        todo!()
    }

    /// The glob in globset's dialect, for matching many patterns at once.
    #[must_use]
    pub fn to_glob(&self) -> globset::Glob {
        todo!()
    }
}

impl Template {
    /// Any text is a template.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }

    /// As written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number of `*`.
    #[must_use]
    pub fn wildcards(&self) -> usize {
        self.text.matches('*').count()
    }

    /// The donor's key: captures in order in place of each `*`.
    #[must_use]
    pub fn fill(&self, captures: &Captures<'_>) -> String {
        todo!()
    }
}
