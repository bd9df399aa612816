//! Diagnostics as text for people, in rustc's style: `error[code]: message`, the labelled lines, `help: …`.
//!
//! `annotate-snippets` draws lines and labels. Headings and help are wrapped here, which it does not do.

use std::fmt::Write;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Group, Level, Renderer};

use super::excerpt::{Excerpt, Text};
use super::layout::wrap_whole;
use super::sanitize::clean;
use super::{BOLD, Diagnostic, Look, Severity, Source, words};

/// Maximum number of diagnostics shown; the rest is only counted.
const MAX_DIAGNOSTICS: usize = 100;
/// Columns by which the continued lines of a heading are indented.
const HANG: usize = 2;
/// Columns before a help's text, without those of the line number.
const BEFORE_HELP: usize = " = help: ".len();

/// Diagnostics as text, in the order given, each followed by an empty line.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], source: Option<&Source>, look: Look) -> String {
    let text = source.map(Text::new);
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
        (count > 0).then(|| words::count(count, severity.word()))
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
        let overrun = self.excerpt.as_ref().map_or(0, |excerpt| excerpt.overrun);
        let mut elements = self.excerpt.map(|excerpt| excerpt.elements).unwrap_or_default();
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
            let renderer = renderer.decor_style(decor).term_width(look.width.saturating_sub(overrun));
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

#[cfg(test)]
mod tests;
