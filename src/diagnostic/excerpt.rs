//! [`Excerpt`]: the labelled lines of a source, as `annotate-snippets` takes them.
//!
//! It panics on labels outside of its text, and draws lines wider than the terminal where labels do not fit into one
//! window. So labels are clipped here, and those too far to the side of others get a window of their own.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Origin, Snippet};

use super::position::Lines;
use super::sanitize::{clean, sanitize};
use super::{Label, Look, Source, columns};

/// Longest line in bytes that is drawn. Drawing takes time in proportion to a line, however little of it is shown.
pub(super) const MAX_LINE: usize = 1 << 16;
/// Columns of a line that are shown beside its labels, on each side, at least.
const MARGIN: usize = 6;
/// Columns that a label underlines at least, however narrow the terminal is.
const MIN_UNDERLINE: usize = 8;

/// Columns that two halves of wide characters take, one at each cut.
const MAX_OVERRUN: usize = 2;

/// A source and its lines.
pub(super) struct Text<'s> {
    source: &'s Source,
    lines: Lines<'s>,
}

/// The places of a diagnostic, ready to be drawn.
pub(super) struct Excerpt {
    pub(super) elements: Vec<Element<'static>>,
    /// The 1-based number of the last line.
    pub(super) last_line: usize,
    /// Columns by which a drawn line may exceed the terminal's width: where `annotate-snippets` cuts a wide character,
    /// it shows the whole of it, on either side.
    pub(super) overrun: usize,
}

/// A label in the line that it begins in.
struct Mark {
    kind: AnnotationKind,
    line: usize,
    /// Bytes of the line.
    bytes: Range<usize>,
    /// Columns, the message included.
    columns: Range<usize>,
    message: Option<String>,
}

impl<'s> Text<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        Self { source, lines: Lines::new(&source.text) }
    }

    /// The labelled lines, or only the place of the first label where a line is too long to be drawn.
    pub(super) fn excerpt(&self, labels: &[Label], look: Look) -> Excerpt {
        let path = clean(&self.source.path.to_string_lossy(), Look::PLAIN);
        let lines = labels.iter().map(|label| self.lines.line_of(self.lines.clamp(&label.span).start));
        if lines.clone().any(|line| self.lines.text(line).len() > MAX_LINE) {
            let place = labels.first().map_or(0, |label| self.lines.clamp(&label.span).start);
            let place = self.lines.position(place);
            let origin = Origin::path(path).line(place.line).char_column(place.column);
            return Excerpt { elements: vec![origin.into()], last_line: 1, overrun: 0 };
        }
        let last_line = lines.max().unwrap_or(0) + 1;
        let frame = last_line.to_string().len() + " | ".len() + 2 * MARGIN;
        let room = look.width.saturating_sub(frame).max(MIN_UNDERLINE);
        let mut windows: Vec<Vec<Mark>> = Vec::new();
        for (at, label) in labels.iter().enumerate() {
            let kind = if at == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let mark = self.mark(kind, label, room, look);
            let fits = |window: &&mut Vec<Mark>| {
                let left =
                    window.iter().map(|other| other.columns.start).fold(mark.columns.start, usize::min);
                let right = window.iter().map(|other| other.columns.end).fold(mark.columns.end, usize::max);
                right - left <= room
            };
            match windows.iter_mut().find(fits) {
                Some(window) => window.push(mark),
                None => windows.push(vec![mark]),
            }
        }
        let overrun = if self.source.text.is_ascii() { 0 } else { MAX_OVERRUN };
        let elements = windows.into_iter().map(|window| self.snippet(window).path(path.clone()).into());
        Excerpt { elements: elements.collect(), last_line, overrun }
    }

    /// Clips a label to `room` columns, its message included. A message without room is left out.
    fn mark(&self, kind: AnnotationKind, label: &Label, room: usize, look: Look) -> Mark {
        let span = self.lines.clamp(&label.span);
        let line = self.lines.line_of(span.start);
        let text = self.lines.text(line);
        let within = self.lines.within(line, &span);
        let message = Some(clean(&label.message, look))
            .filter(|message| !message.is_empty() && columns(message) + 1 + MIN_UNDERLINE <= room);
        let beside = message.as_ref().map_or(0, |message| columns(message) + 1);
        let (mut end, mut width) = (within.start, 0);
        for character in text[within.clone()].chars() {
            width += drawn_columns(character);
            if width > room - beside {
                break;
            }
            end += character.len_utf8();
        }
        let start = text[..within.start].chars().map(drawn_columns).sum();
        let columns = start..start + width.min(room - beside).max(1) + beside;
        Mark { kind, line, bytes: within.start..end, columns, message }
    }

    /// The lines from the first to the last label. Lines far from all labels are not shown and stay empty.
    fn snippet(&self, marks: Vec<Mark>) -> Snippet<'static, annotate_snippets::Annotation<'static>> {
        let lines = || marks.iter().map(|mark| mark.line);
        let (first, last) = (lines().min().unwrap_or(0), lines().max().unwrap_or(0));
        let (mut text, mut starts) = (String::new(), Vec::new());
        for line in first..=last {
            starts.push(text.len());
            let shown = self.lines.text(line);
            if shown.len() <= MAX_LINE && lines().any(|labelled| labelled.abs_diff(line) <= 1) {
                text += &sanitize(shown);
                // A line is cut only if it is too long itself, so that a message behind its end counts as part of it.
                let ends = marks.iter().filter(|mark| mark.line == line).map(|mark| mark.columns.end);
                let drawn: usize = shown.chars().map(drawn_columns).sum();
                text.extend(std::iter::repeat_n(' ', ends.max().unwrap_or(0).saturating_sub(drawn)));
            }
            text.push('\n');
        }
        let annotations = marks.into_iter().map(|Mark { kind, line, bytes, message, .. }| {
            let start = starts[line - first];
            kind.span(start + bytes.start..start + bytes.end).label(message)
        });
        Snippet::source(text).line_start(first + 1).annotations(annotations)
    }
}

/// The columns of a character in the drawing.
fn drawn_columns(character: char) -> usize {
    if character == '\t' { 4 } else { columns(character.encode_utf8(&mut [0; 4])) }
}
