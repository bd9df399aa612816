use proptest::prelude::*;

use super::*;
use crate::diagnostic::excerpt::MAX_LINE;
use crate::diagnostic::{Code, Span, columns};

fn source(text: &str) -> Source {
    Source { path: "x.yaml".into(), text: text.into() }
}

fn drawn(text: &str, labels: &[(Span, &str)], look: Look) -> String {
    let mut diagnostic = Diagnostic::new(Code::BadValue, "wrong");
    for (span, message) in labels {
        diagnostic = diagnostic.label(span.clone(), *message);
    }
    render(&[diagnostic], Some(&source(text)), look)
}

const ASCII: Look = Look { width: 80, colour: false, unicode: false };

#[test]
fn a_diagnostic_begins_with_severity_and_code_and_ends_with_its_help() {
    let diagnostic = Diagnostic::new(Code::NoEffect, "nothing changes").label(11..12, "here").help("drop it");
    assert_eq!(
        render(std::slice::from_ref(&diagnostic), Some(&source("version: 1\nx: 2\n")), ASCII),
        format!(
            "note[{}]: nothing changes\n --> x.yaml:2:1\n  |\n2 | x: 2\n  | ^ here\n  |\n  = help: drop it\n\n",
            Code::NoEffect
        )
    );
    let unplaced = render(&[diagnostic], None, ASCII);
    assert_eq!(unplaced.lines().last(), Some(""), "{unplaced}");
}

#[test]
fn labels_far_apart_are_drawn_without_the_lines_between() {
    let text = drawn("a\nb\nc\nd\ne\n", &[(8..9, "used here"), (0..1, "written here")], ASCII);
    assert!(text.contains(" --> x.yaml:5:1\n"), "{text}");
    assert!(text.contains("1 | a\n  | - written here\n...\n5 | e\n  | ^ used here\n"), "{text}");
    assert!(!text.contains("| b") && !text.contains("| d"), "{text}");
}

#[test]
fn lines_end_as_in_yaml() {
    for text in ["a: 1\nb: 2\n", "a: 1\r\nb: 2\r\n", "a: 1\rb: 2\r"] {
        let at = text.find('b').unwrap();
        let drawn = drawn(text, &[(at..at + 1, "")], ASCII);
        assert!(drawn.contains(" --> x.yaml:2:1\n  |\n2 | b: 2\n  | ^\n"), "{drawn}");
    }
    let end = drawn("a: 1\n", &[(5..5, "")], ASCII);
    assert!(end.contains(" --> x.yaml:2:1\n"), "the end is on the line after the last break: {end}");
}

#[test]
fn a_long_line_is_cut_around_the_label_and_a_huge_one_is_not_drawn() {
    for (before, shown) in [(5000, true), (MAX_LINE, false)] {
        let line = format!("{}HERE{}", "a".repeat(before), "b".repeat(5000));
        let text = drawn(&line, &[(before..before + 4, "")], Look { width: 60, ..ASCII });
        assert!(text.contains(&format!("x.yaml:1:{}\n", before + 1)), "{text}");
        assert_eq!(text.contains("HERE"), shown, "{text}");
        assert!(text.lines().all(|line| columns(line) <= 60), "{text}");
    }
}

#[test]
fn labels_too_far_to_the_side_have_a_window_of_their_own() {
    let line = format!("one{}two\n", " ".repeat(100));
    let text = drawn(&line, &[(0..3, "first"), (103..106, "second")], Look { width: 60, ..ASCII });
    assert!(text.contains(" --> x.yaml:1:1\n") && text.contains(" ::: x.yaml:1:104\n"), "{text}");
    assert!(text.contains(" first\n") && text.contains(" second\n"), "{text}");
    assert!(text.lines().all(|line| columns(line) <= 60), "{text}");
}

#[test]
fn nothing_that_a_terminal_obeys_is_printed() {
    let text = "a: \x1b[31mred # \u{9b}\u{202e}x\n";
    let diagnostic = Diagnostic::new(Code::BadValue, "a\x1b[1m\nb").label(0..1, "\x07").help("c\x1b[1m\td");
    let source = Source { path: "x\n\x1b.yaml".into(), text: text.into() };
    for look in [Look::PLAIN, ASCII] {
        let drawn = render(std::slice::from_ref(&diagnostic), Some(&source), look);
        let obeyed = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
        assert!(!drawn.contains(obeyed), "{drawn:?}");
        assert!(drawn.contains("x ?.yaml:1:1"), "{drawn}");
    }
}

#[test]
fn only_the_first_hundred_are_shown() {
    let many = vec![Diagnostic::new(Code::BadValue, "wrong"); 103];
    let text = render(&many, None, Look::PLAIN);
    assert_eq!(text.matches("wrong").count(), 100);
    assert!(text.ends_with("\nand 3 more\n\n"), "{text}");
    let note = Diagnostic::new(Code::NoEffect, "x");
    assert_eq!(summary(&[many[0].clone(), note.clone(), many[0].clone()]), "2 errors, 1 note");
    assert_eq!(summary(&[note.clone(), note]), "2 notes");
    assert_eq!(summary(&[]), "");
}

#[test]
fn colour_adds_escapes_and_nothing_else() {
    let labels = [(0..1, "one"), (5..6, "two")];
    let plain = drawn("a: 1\nb: 2\n", &labels, Look::PLAIN);
    let coloured = drawn("a: 1\nb: 2\n", &labels, Look { colour: true, ..Look::PLAIN });
    let mut stripped = String::new();
    for (at, part) in coloured.split('\x1b').enumerate() {
        stripped += if at == 0 { part } else { part.split_once('m').expect("an escape has an end").1 };
    }
    assert!(coloured.contains('\x1b') && stripped == plain, "{stripped}");
}

proptest! {
    /// Labels may be anywhere: overlapping, beyond the end, within a character, over several lines.
    #[test]
    fn any_labels_can_be_drawn(
        text in "(?s)[a-zé重\\t\\r\\n\u{200d}\u{301}\x00-\x7f]{0,60}|(?s).{0,60}",
        labels in prop::collection::vec((0..80_usize, 0..20_usize, "(?s).{0,12}"), 1..4),
        width in 1..100_usize,
        unicode: bool,
    ) {
        let labels: Vec<_> =
            labels.iter().map(|(start, length, text)| (*start..start + length, text.as_str())).collect();
        let drawn = drawn(&text, &labels, Look { width, unicode, colour: false });
        prop_assert!(drawn.contains(" x.yaml:"), "{drawn}");
        let wide = drawn.lines().find(|line| columns(line) > width.max(30));
        prop_assert_eq!(wide, None, "{}", drawn);
    }
}
