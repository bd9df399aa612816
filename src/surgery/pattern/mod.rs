//! A glob over whole keys: [`Pattern`]; its use on many keys: [`Matcher`]; [`Captures`] and [`Template`] for `replace`.
//!
//! The dialect is our own: `*` (any text, dots too), `?` (one character), `[0-3]`, `[!a]` or `[^a]`, `{a,b}`,
//! `{0..15}` and `\` escapes, case-sensitive. [`parse`] reads it into [`Part`]s. A pattern keeps its text alone, because
//! a file may have many: [`Matcher`] takes its parts and runs them, [`capture`] finds what each `*` stands for where that
//! is not plain to see. A property test holds both and globset together.

mod capture;
#[cfg(test)]
mod glob;
mod matcher;
mod parse;
mod places;
mod template;
#[cfg(test)]
mod tests;

pub use matcher::Matcher;
pub use template::{Captures, Template};

use std::ops::RangeInclusive;

use crate::diagnostic::Span;

/// A checked glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    wildcards: usize,
    /// The first `*` within braces, which has no place among captures.
    braced_star: Option<Span>,
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
    /// This text. Two of them never stand side by side.
    Text(String),
    /// `*`: any text.
    Star,
    /// `?`: any one character.
    One,
    /// `[…]`: one character of these ranges, or of all others.
    Class { negated: bool, ranges: Vec<(char, char)> },
    /// `{…}`: one of these, in the order they are written.
    Either(Vec<Vec<Part>>),
    /// `a..b` within braces: one of these numbers, as keys count, without leading zeros.
    Numbers(RangeInclusive<u64>),
}

impl Pattern {
    /// Checks a glob.
    ///
    /// # Errors
    /// The first thing wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let parsed = parse::parse(text)?;
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

    /// The place of the first `*` within braces, if any; such a pattern cannot capture.
    #[must_use]
    pub fn braced_star(&self) -> Option<Span> {
        self.braced_star.clone()
    }

    /// The braces that stand in no others, from left to right.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        let groups = parse::parse(&self.text).map(|parsed| parsed.groups).unwrap_or_default();
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

    /// Whether the whole key matches. For more than a few keys, take a [`Matcher`].
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        Matcher::new(self).matches(key)
    }

    /// What each `*` matched, as [`Matcher::captures`] has it.
    #[must_use]
    pub fn captures<'k>(&self, key: &'k str) -> Option<Captures<'k>> {
        Matcher::new(self).captures(key)
    }

    /// Its parts: those of a pattern that was parsed once.
    fn parts(&self) -> Vec<Part> {
        parse::parse(&self.text).map(|parsed| parsed.parts).unwrap_or_default()
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

impl Part {
    /// Whether a part that stands for one character accepts this one.
    fn accepts(&self, sign: char) -> bool {
        match self {
            Self::One => true,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&sign)) != *negated
            }
            _ => false,
        }
    }
}
