//! [`Part`]: a pattern, parsed.

use std::ops::RangeInclusive;

/// One part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// This text. Two of them are never adjacent.
    Text(String),
    /// `*`: any text.
    Star,
    /// `?`: any one character.
    One,
    /// `[…]`: one character within these ranges or, if negated, outside of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
    /// `{…}`: one of these alternatives, in the order in which they are written.
    Either(Vec<Vec<Part>>),
    /// `a..b` within braces: one of these numbers, without leading zeros.
    Numbers(RangeInclusive<u64>),
}

impl Part {
    /// Whether a part that matches one character accepts this one.
    pub(super) fn accepts(&self, sign: char) -> bool {
        match self {
            Self::One => true,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&sign)) != *negated
            }
            Self::Text(_) | Self::Star | Self::Either(_) | Self::Numbers(_) => false,
        }
    }
}
