//! [`Pattern`]: a glob over whole keys; [`Captures`] and [`Template`] for `replace`.
//!
//! The dialect is our own: `*` (any text, dots too), `?` (one character), `[0-3]`, `[!a]` or `[^a]`, `{a,b}`,
//! `{0..15}` and `\` escapes, case-sensitive. [`parse`] reads it into [`Part`]s; [`glob`] writes them in a form that
//! globset cannot read otherwise than meant; [`matcher`] runs them itself, with captures. A property test holds
//! globset and the matcher together.

mod glob;
mod matcher;
mod parse;
mod set;
mod template;
#[cfg(test)]
mod tests;

pub use set::PatternSet;
pub use template::{Captures, Template};

use crate::diagnostic::Span;
use matcher::Program;

/// A checked glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    wildcards: usize,
    /// The first `*` within braces, which has no place among captures.
    braced_star: Option<Span>,
    groups: Vec<Group>,
    program: Program,
    glob: globset::Glob,
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

/// Braces of a pattern that stand in no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Bytes within the pattern, braces included.
    pub span: Span,
    /// The alternatives as they are written, numeric ranges expanded.
    pub alternatives: Vec<String>,
}

/// One part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// This character.
    Literal(char),
    /// `*`: any text.
    Star,
    /// `?`: any one character.
    One,
    /// `[…]`: one character of these ranges, or of all others.
    Class { negated: bool, ranges: Vec<(char, char)> },
    /// `{…}`: one of these, in the order they are written.
    Either(Vec<Vec<Part>>),
}

impl Pattern {
    /// Checks a glob.
    ///
    /// # Errors
    /// The first thing wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let parsed = parse::parse(text)?;
        let glob = glob::compile(&parsed.parts).map_err(|error| PatternError {
            span: 0..text.len(),
            message: error.kind().to_string(),
            help: None,
        })?;
        Ok(Self {
            text: text.to_owned(),
            wildcards: parsed.wildcards,
            braced_star: parsed.braced_star,
            groups: parsed.groups,
            program: Program::compile(&parsed.parts),
            glob,
        })
    }

    /// As written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number of `*`.
    #[must_use]
    pub fn wildcards(&self) -> usize {
        self.wildcards
    }

    /// The place of the first `*` within braces, if any; such a pattern cannot capture.
    #[must_use]
    pub fn braced_star(&self) -> Option<Span> {
        self.braced_star.clone()
    }

    /// The braces that stand in no others, from left to right.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The pattern with one alternative in place of a group.
    #[must_use]
    pub fn narrowed(&self, group: &Group, alternative: &str) -> Option<Self> {
        let (before, after) = (self.text.get(..group.span.start)?, self.text.get(group.span.end..)?);
        Self::parse(&format!("{before}{alternative}{after}")).ok()
    }

    /// Whether the whole key matches.
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        self.program.matches(key)
    }

    /// What each `*` matched: from the left, each takes the shortest text that lets the rest match, and of
    /// alternatives the first that does. `None` when the key does not match, when a `*` stands in braces, or when
    /// pattern and key are both so long (thousands of characters) that the search would not be cheap.
    #[must_use]
    pub fn captures<'k>(&self, key: &'k str) -> Option<Captures<'k>> {
        if self.braced_star.is_some() {
            return None;
        }
        self.program.captures(key).map(Captures)
    }

    /// The glob in globset's dialect, for matching many patterns at once. On keys that are plain ASCII it matches what
    /// [`matches`](Self::matches) matches; globset counts bytes where `?` counts characters. [`PatternSet`] knows.
    #[must_use]
    pub fn to_glob(&self) -> globset::Glob {
        self.glob.clone()
    }
}
