//! [`Pattern`]: a checked glob.

use super::parse::{PatternError, parse};
use super::part::Part;
use crate::diagnostic::Span;

/// A checked glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    wildcards: usize,
    /// The first `*` within braces, which cannot capture.
    braced_star: Option<Span>,
}

/// Braces of a pattern, not nested in others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Byte offsets in the pattern, braces included.
    pub span: Span,
    /// The alternatives as written, with numeric ranges expanded.
    pub alternatives: Vec<String>,
}

impl Pattern {
    /// Checks a glob.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let parsed = parse(text)?;
        Ok(Self { text: text.to_owned(), wildcards: parsed.wildcards, braced_star: parsed.braced_star })
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

    /// The place of the first `*` within braces; a pattern that has one cannot capture.
    #[must_use]
    pub fn braced_star(&self) -> Option<Span> {
        self.braced_star.clone()
    }

    /// The outermost braces, from left to right.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        let groups = parse(&self.text).map(|parsed| parsed.groups).unwrap_or_default();
        let text = |span: Span| self.text.get(span).unwrap_or_default();
        let group = |(span, alternatives): (Span, Vec<Span>)| {
            let alternatives = alternatives.into_iter().flat_map(|alternative| expanded(text(alternative)));
            Group { span, alternatives: alternatives.collect() }
        };
        groups.into_iter().map(group).collect()
    }

    /// The pattern with one alternative in place of a group.
    #[must_use]
    pub fn narrowed(&self, group: &Group, alternative: &str) -> Option<Self> {
        let (before, after) = (self.text.get(..group.span.start)?, self.text.get(group.span.end..)?);
        Self::parse(&format!("{before}{alternative}{after}")).ok()
    }

    /// Its parts.
    pub(super) fn parts(&self) -> Vec<Part> {
        parse(&self.text).map(|parsed| parsed.parts).unwrap_or_default()
    }
}

/// The numbers of a range, or an alternative as it is.
fn expanded(alternative: &str) -> Vec<String> {
    let numbers = alternative.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match numbers {
        Some((from, to)) => (from..=to).map(|number: u64| number.to_string()).collect(),
        None => vec![alternative.to_owned()],
    }
}
