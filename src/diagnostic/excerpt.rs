//! [`Excerpt`]: the lines of a file that a diagnostic shows, fit to be printed.

use std::collections::BTreeMap;
use std::ops::Range;

use super::position::Lines;
use super::{Label, Look, Source, Span};

/// Columns that the drawing takes beside the text: line number, bar, spaces.
const FRAME: usize = 12;
/// The narrowest excerpt that still shows something.
const NARROWEST: usize = 12;

/// A stand-in for the file, with as many lines: those around labels, sanitized and cut to width, and empty ones.
#[derive(Debug)]
pub(super) struct Excerpt {
    /// `path:line:column` of the first label.
    pub(super) name: String,
    pub(super) text: String,
    /// The labels' places in `text`, in their order.
    pub(super) spans: Vec<Span>,
    /// Where the labels end that are so near to the first in the file that they are drawn in one piece with it.
    pub(super) first_piece: usize,
}

impl Excerpt {
    pub(super) fn new(source: &Source, labels: &[Label], look: Look) -> Self {
        let lines = Lines::new(&source.text);
        let spans: Vec<Span> = labels.iter().map(|label| lines.clamp(&label.span)).collect();
        let primary = spans.first().map_or(0, |span| span.start);
        let position = lines.position(primary);
        let room = look.width.saturating_sub(FRAME).max(NARROWEST);
        let mut wanted: BTreeMap<usize, Option<Range<usize>>> = BTreeMap::new();
        for span in &spans {
            let line = lines.line_of(span.start);
            let within = lines.within(line, span);
            wanted.entry(line.saturating_sub(1)).or_default();
            wanted.entry(line + 1).or_default();
            let marked = wanted.entry(line).or_default();
            *marked = Some(match marked.take() {
                // The first label decides what of a long line is shown, the others only if there is room.
                Some(other) if within.end.max(other.end) - within.start.min(other.start) <= room => {
                    within.start.min(other.start)..within.end.max(other.end)
                }
                Some(other) => other,
                None => within,
            });
        }
        let mut excerpt = Self {
            name: format!(
                "{}:{}:{}",
                sanitize(&source.path.to_string_lossy()),
                position.line,
                position.column
            ),
            text: String::new(),
            spans: Vec::new(),
            first_piece: 0,
        };
        let mut shown: BTreeMap<usize, Cut> = BTreeMap::new();
        let last = wanted.keys().next_back().copied().unwrap_or(0).min(lines.count() - 1);
        for line in 0..=last {
            if let Some(marked) = wanted.get(&line) {
                let cut =
                    Cut::new(lines.text(line), marked.clone().unwrap_or(0..0), room, look.either("…", "..."));
                shown.insert(line, Cut { at: excerpt.text.len(), ..cut.clone() });
                excerpt.text.push_str(&cut.text);
            }
            if line < last {
                excerpt.text.push('\n');
            }
        }
        for span in &spans {
            let line = lines.line_of(span.start);
            let within = lines.within(line, span);
            let place = shown.get(&line).map_or(0..0, |cut| cut.place(&within));
            excerpt.spans.push(place);
        }
        excerpt.first_piece = first_piece(&excerpt.text, &excerpt.spans);
        excerpt
    }
}

/// Each place is drawn with a line above and one below it, and in one piece with the next where these meet.
fn first_piece(text: &str, spans: &[Span]) -> usize {
    let lines = Lines::new(text);
    let mut sorted: Vec<&Span> = spans.iter().collect();
    sorted.sort_unstable_by_key(|span| span.start);
    let mut end = sorted.first().map_or(0, |span| span.end);
    for span in sorted {
        if lines.line_of(span.start) > lines.line_of(end) + 3 {
            break;
        }
        end = end.max(span.end);
    }
    end
}

/// A line as it is shown: from `from` on, `head` bytes being an ellipsis.
#[derive(Debug, Clone)]
struct Cut {
    text: String,
    /// Where it begins in the excerpt.
    at: usize,
    from: usize,
    head: usize,
    /// Bytes shown of the line itself.
    length: usize,
}

impl Cut {
    /// At most about `room` characters of a line, with `marked` among them.
    fn new(line: &str, marked: Range<usize>, room: usize, dots: &str) -> Self {
        if line.len() <= room || line.chars().nth(room).is_none() {
            return Self { text: sanitize(line), at: 0, from: 0, head: 0, length: line.len() };
        }
        let before = room / 3;
        let from = if marked.end <= room {
            0
        } else {
            line.get(..marked.start)
                .and_then(|start| start.char_indices().rev().take(before).last())
                .map_or(0, |(at, _)| at)
        };
        let rest = line.get(from..).unwrap_or_default();
        let length = rest.char_indices().nth(room).map_or(rest.len(), |(at, _)| at);
        let (head, tail) = (if from > 0 { dots } else { "" }, if length < rest.len() { dots } else { "" });
        let text = format!("{head}{}{tail}", sanitize(rest.get(..length).unwrap_or_default()));
        Self { text, at: 0, from, head: head.len(), length }
    }

    /// Where a range of the line stands in the excerpt.
    fn place(&self, range: &Range<usize>) -> Span {
        let place = |offset: usize| self.at + self.head + offset.saturating_sub(self.from).min(self.length);
        place(range.start)..place(range.end)
    }
}

/// The same number of bytes, but nothing that a terminal obeys.
pub(super) fn sanitize(line: &str) -> String {
    line.chars()
        .map(|sign| match (sign, sign.len_utf8()) {
            ('\t' | '\n', _) => sign,
            (sign, 1) if sign.is_control() => '?',
            (sign, 2) if sign.is_control() => '¿',
            // Marks that turn the direction of text round can hide what a line says.
            ('\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}', _) => '\u{FFFD}',
            (sign, _) => sign,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn excerpt(text: &str, span: Span, width: usize) -> Excerpt {
        let source = Source { path: "x.yaml".into(), text: text.into() };
        Excerpt::new(&source, &[Label { span, message: String::new() }], Look { width, ..Look::PLAIN })
    }

    #[test]
    fn only_the_lines_around_a_label_are_kept_at_their_numbers() {
        let excerpt = excerpt("a\nb\nc\nd\ne\n", 4..5, 80);
        assert_eq!(excerpt.text, "\nb\nc\nd");
        assert_eq!(excerpt.spans[0], 3..4);
        assert_eq!(excerpt.name, "x.yaml:3:1");
    }

    #[test]
    fn the_first_piece_ends_where_the_next_label_is_too_far_below() {
        assert_eq!(first_piece("a\nb\nc\nd\ne\nf\n", &[6..7, 0..1]), 7, "from a to d");
        assert_eq!(first_piece("a\nb\nc\nd\ne\nf\n", &[8..9, 0..1]), 1, "e is too far");
    }

    #[test]
    fn a_long_line_is_cut_around_the_label() {
        let line = format!("{}HERE{}", "a".repeat(5000), "b".repeat(5000));
        let excerpt = excerpt(&line, 5000..5004, 60);
        assert!(excerpt.text.len() < 60);
        assert_eq!(&excerpt.text[excerpt.spans[0].clone()], "HERE");
    }

    #[test]
    fn escape_sequences_are_not_obeyed() {
        let excerpt = excerpt("a: \x1b[31mred # \u{9b}\u{202e}x\n", 0..1, 80);
        assert_eq!(excerpt.text, "a: ?[31mred # ¿\u{FFFD}x\n");
    }

    proptest! {
        #[test]
        fn any_label_finds_a_place_in_its_excerpt(text in "(?s).{0,200}", from in 0..300_usize, length in 0..50_usize) {
            let excerpt = excerpt(&text, from..from + length, 20);
            let span = excerpt.spans[0].clone();
            prop_assert!(excerpt.text.get(span).is_some());
        }
    }
}
