//! From bytes to lines and columns.

use super::Span;

/// A line and a column, both 1-based; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The byte offsets of lines: after LF, CR LF, or a lone CR, which ends a line of YAML too.
pub(crate) fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    let breaks = text.bytes().enumerate().filter(|&(at, byte)| match byte {
        b'\n' => true,
        b'\r' => text.as_bytes().get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    std::iter::once(0).chain(breaks.map(|(at, _)| at + 1))
}

/// A text's lines, at least one; the last may have no line break.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, starts: line_starts(text).collect() }
    }

    /// The 0-based line of a byte.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// A line without its line break.
    pub(super) fn text(&self, line: usize) -> &'t str {
        let start = self.starts.get(line).copied().unwrap_or(self.text.len());
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let text = self.text.get(start..end).unwrap_or_default();
        let text = text.strip_suffix('\n').unwrap_or(text);
        text.strip_suffix('\r').unwrap_or(text)
    }

    /// The part of a span that is on a line, in bytes of that line.
    pub(super) fn within(&self, line: usize, span: &Span) -> Span {
        let start = self.starts.get(line).copied().unwrap_or(0);
        let length = self.text(line).len();
        let clip = |offset: usize| offset.saturating_sub(start).min(length);
        clip(span.start)..clip(span.end)
    }

    pub(super) fn position(&self, offset: usize) -> Position {
        let line = self.line_of(offset);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        Position { line: line + 1, column: before.chars().count() + 1 }
    }

    /// Where a span begins and ends (exclusive).
    pub(super) fn range(&self, span: &Span) -> (Position, Position) {
        let span = self.clamp(span);
        (self.position(span.start), self.position(span.end))
    }

    /// The same span within the text, on character boundaries.
    pub(super) fn clamp(&self, span: &Span) -> Span {
        let floor = |offset: usize| self.text.floor_char_boundary(offset);
        let start = floor(span.start);
        start..floor(span.end).max(start)
    }
}
