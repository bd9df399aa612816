//! Diagnostics as text for people, in rustc's style: `error[code]: message`, the labelled lines, `help: …`.
//!
//! `annotate-snippets` draws lines and labels. Here headings and help are wrapped, which it does not do, and text from
//! strangers is made safe to print.

use std::fmt::Write;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::layout::wrap_whole;
use super::position::Lines;
use super::sanitize::sanitize;
use super::{BOLD, Diagnostic, Label, Look, Severity, Source, Span, columns};

/// Maximum number of diagnostics shown; the rest is only counted.
const MAX_DIAGNOSTICS: usize = 100;
/// Longest line in bytes that is shown. Drawing takes time in proportion to a line, however little of it is shown.
const MAX_LINE: usize = 1 << 16;
/// Columns beside a label's text that its line needs at least: line number, separators, something to point at.
const BESIDE_LABEL: usize = 16;
/// Columns by which the continued lines of a heading are indented.
const HANG: usize = 2;
/// Columns before a help's text, without those of the line number.
const BEFORE_HELP: usize = " = help: ".len();

/// Diagnostics as text, in the order given, each followed by an empty line.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], source: Option<&Source>, look: Look) -> String {
    let text = source.map(|source| Text { source, lines: Lines::new(&source.text) });
    let mut out = String::new();
    for diagnostic in diagnostics.iter().take(MAX_DIAGNOSTICS) {
        let text = text.as_ref().filter(|_| !diagnostic.labels.is_empty());
        let drawing = Drawing {
            severity: diagnostic.severity(),
            tag: diagnostic.tag(),
            message: &diagnostic.message,
            excerpt: text.map(|text| text.excerpt(&diagnostic.labels, look)),
            help: diagnostic.help.as_deref(),
        };
        out += &drawing.draw(look);
        out.push('\n');
    }
    if let Some(more @ 1..) = diagnostics.len().checked_sub(MAX_DIAGNOSTICS) {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "and {more} more\n");
    }
    out
}

/// An error without a code as text.
#[must_use]
pub(crate) fn render_error(message: &str, help: Option<&str>, look: Look) -> String {
    let severity = Severity::Error;
    Drawing { severity, tag: severity.word().to_owned(), message, excerpt: None, help }.draw(look)
}

/// How many there are of each severity, such as `2 errors, 1 note`; empty when there are none.
#[must_use]
pub(crate) fn summary(diagnostics: &[Diagnostic]) -> String {
    let part = |severity: Severity| {
        let count = diagnostics.iter().filter(|diagnostic| diagnostic.severity() == severity).count();
        let plural = if count == 1 { "" } else { "s" };
        (count > 0).then(|| format!("{count} {}{plural}", severity.word()))
    };
    let parts = [Severity::Error, Severity::Warning, Severity::Advice].into_iter().filter_map(part);
    parts.collect::<Vec<_>>().join(", ")
}

/// A diagnostic that is to be drawn.
struct Drawing<'d> {
    severity: Severity,
    /// `error[surgery::no_match]`.
    tag: String,
    message: &'d str,
    excerpt: Option<Excerpt>,
    help: Option<&'d str>,
}

impl Drawing<'_> {
    fn draw(self, look: Look) -> String {
        let mut out = self.heading(look);
        let digits = self.excerpt.as_ref().map_or(1, |excerpt| excerpt.last_line.to_string().len());
        let mut elements: Vec<_> = self.excerpt.into_iter().map(|excerpt| excerpt.element).collect();
        if let Some(help) = self.help {
            let room = look.width.saturating_sub(digits + BEFORE_HELP);
            elements.push(Level::HELP.message(wrap_whole(&clean(help, look), room).join("\n")).into());
        }
        if !elements.is_empty() {
            let level = match self.severity {
                Severity::Error => Level::ERROR,
                Severity::Warning => Level::WARNING,
                Severity::Advice => Level::NOTE,
            };
            let renderer = if look.colour { Renderer::styled() } else { Renderer::plain() };
            let decor = if look.unicode { DecorStyle::Unicode } else { DecorStyle::Ascii };
            let renderer = renderer.decor_style(decor).term_width(look.width);
            let drawn = renderer.render(&[Group::with_level(level).elements(elements)]);
            drawn.lines().for_each(|line| out.extend([line.trim_end(), "\n"]));
        }
        out
    }

    /// Tag and message. Names stay whole, so that they can be copied.
    fn heading(&self, look: Look) -> String {
        let text = format!("{}: {}", self.tag, clean(self.message, look));
        let mut out = String::new();
        for (at, line) in wrap_whole(&text, look.width.saturating_sub(HANG)).iter().enumerate() {
            match line.strip_prefix(&self.tag).filter(|_| at == 0) {
                Some(rest) => {
                    out += &(look.paint(self.severity.style(), &self.tag) + &look.paint(BOLD, rest));
                }
                None => out += &(" ".repeat(HANG) + &look.paint(BOLD, line)),
            }
            out.push('\n');
        }
        out
    }
}

/// Text for one paragraph, with nothing in it that the terminal obeys or cannot show.
fn clean(text: &str, look: Look) -> String {
    look.text(&sanitize(&text.replace(['\n', '\t'], " ")))
}

/// A source and where its lines are.
struct Text<'s> {
    source: &'s Source,
    lines: Lines<'s>,
}

/// The place of a diagnostic, ready to be drawn.
struct Excerpt {
    element: Element<'static>,
    /// The 1-based number of the last line.
    last_line: usize,
}

impl Text<'_> {
    /// The labelled lines, or only the place of the first label where a line is too long to be drawn.
    fn excerpt(&self, labels: &[Label], look: Look) -> Excerpt {
        let lines = &self.lines;
        let path = clean(&self.source.path.to_string_lossy(), Look::PLAIN);
        // A label is drawn in the line that it begins in.
        let places: Vec<_> = (labels.iter())
            .map(|label| {
                let span = lines.clamp(&label.span);
                let line = lines.line_of(span.start);
                (line, lines.within(line, &span))
            })
            .collect();
        let labelled = places.iter().map(|(line, _)| *line);
        let (first, last) =
            labelled.clone().fold((usize::MAX, 0), |(low, high), line| (low.min(line), high.max(line)));
        let last_line = last + 1;
        if labelled.clone().any(|line| lines.text(line).len() > MAX_LINE) {
            let place = lines.position(lines.clamp(&labels[0].span).start);
            let origin = Origin::path(path).line(place.line).char_column(place.column);
            return Excerpt { element: origin.into(), last_line: 1 };
        }
        // Lines far from all labels are not shown, and line breaks of any kind become one.
        let is_near = |line: usize| labelled.clone().any(|labelled| labelled.abs_diff(line) <= 1);
        let (mut text, mut starts) = (String::new(), Vec::new());
        for line in first..=last {
            starts.push(text.len());
            let shown = Some(lines.text(line)).filter(|text| text.len() <= MAX_LINE && is_near(line));
            text.extend([&sanitize(shown.unwrap_or_default()), "\n"]);
        }
        let annotation = |(at, (label, (line, within))): (usize, (&Label, &(usize, Span)))| {
            let start = starts[line - first];
            let kind = if at == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let message = clean(&label.message, look);
            let fits = !message.is_empty() && columns(&message) + BESIDE_LABEL <= look.width;
            let annotation: Annotation<'static> = kind.span(start + within.start..start + within.end);
            annotation.label(fits.then_some(message))
        };
        let annotations: Vec<_> = labels.iter().zip(&places).enumerate().map(annotation).collect();
        let snippet = Snippet::source(text).path(path).line_start(first + 1).annotations(annotations);
        Excerpt { element: snippet.into(), last_line }
    }
}

#[cfg(test)]
mod tests;
