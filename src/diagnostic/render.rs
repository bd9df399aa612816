//! Diagnostics as text for people, drawn by miette.
//!
//! miette is given an excerpt instead of the file: the lines that matter, cut to the width there is and free of
//! control characters, with everything else left empty. So a file of one long line, or one that holds escape
//! sequences, cannot spoil the terminal.

use std::fmt::{self, Write};
use std::ops::Range;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents, ThemeCharacters, ThemeStyles,
};
use textwrap::core::Word;
use textwrap::{WordSeparator, WordSplitter};

use super::excerpt::{Excerpt, sanitize};
use super::layout::words;
use super::{Diagnostic, Look, Severity, Source, columns};

/// On terminals narrower than this, labels that find no room are left out.
const NARROW: usize = 60;
/// Columns that the drawing takes beside a label's text and what it points at.
const BESIDE: usize = 16;

/// More than these are counted, not shown.
const MOST: usize = 100;

/// Diagnostics as text, in the order given, each followed by an empty line.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], source: Option<&Source>, look: Look) -> String {
    let mut characters = if look.unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
    if !look.unicode {
        (characters.error, characters.warning, characters.advice) = ("x".into(), "!".into(), "i".into());
    }
    let styles = if look.colour { ThemeStyles::ansi() } else { ThemeStyles::none() };
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles })
        .with_width(look.width.max(20))
        .with_context_lines(1)
        // Keys and paths stay whole, so that they can be copied: where they are wider than the terminal, it breaks them.
        .with_break_words(false)
        .with_word_separator(WordSeparator::Custom(separated))
        .with_word_splitter(WordSplitter::NoHyphenation)
        .without_primary_span_start()
        .without_syntax_highlighting()
        .without_cause_chain();
    let mut out = String::new();
    for diagnostic in diagnostics.iter().take(MOST) {
        let excerpt = source
            .filter(|_| !diagnostic.labels.is_empty())
            .map(|source| Excerpt::new(source, &diagnostic.labels, look));
        let mut text = String::new();
        // Writing to a String fails only if a label lies outside its excerpt, which an excerpt rules out.
        if handler.render_report(&mut text, &Drawn { diagnostic, excerpt, look }).is_err() {
            text = sanitize(&diagnostic.message);
        }
        for line in text.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out.push('\n');
    }
    if let Some(more @ 1..) = diagnostics.len().checked_sub(MOST) {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "and {more} more\n");
    }
    out
}

/// Words as they are wrapped: what is in backticks stays whole.
fn separated(text: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    Box::new(words(text).map(Word::from))
}

/// How many there are of each severity, such as `2 errors, 1 warning`; empty when there are none.
#[must_use]
pub fn summary(diagnostics: &[Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity() == severity).count();
    let part = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {many}")),
    };
    let parts = [
        part(count(Severity::Error), "error", "errors"),
        part(count(Severity::Warning), "warning", "warnings"),
        part(count(Severity::Advice), "piece of advice", "pieces of advice"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// One diagnostic as miette wants it.
#[derive(Debug)]
struct Drawn<'d> {
    diagnostic: &'d Diagnostic,
    excerpt: Option<Excerpt>,
    look: Look,
}

impl Drawn<'_> {
    /// Whether a label's text has room beside the middle of its place.
    fn fits(&self, excerpt: &Excerpt, span: &Range<usize>, text: &str) -> bool {
        let start =
            excerpt.text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let middle = span.start - start + span.len() / 2;
        self.look.width >= NARROW || BESIDE + middle + columns(text) <= self.look.width
    }
}

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sanitize(&self.diagnostic.message))
    }
}

impl std::error::Error for Drawn<'_> {}

impl miette::Diagnostic for Drawn<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.diagnostic.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity() {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Advice => miette::Severity::Advice,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.diagnostic.help.as_ref().map(|help| Box::new(sanitize(help)) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        let labels = self.diagnostic.labels.iter().zip(&excerpt.spans).enumerate();
        Some(Box::new(labels.map(|(at, (label, span))| {
            let said = !label.message.is_empty() && self.fits(excerpt, span, &label.message);
            let text = said.then(|| sanitize(&label.message));
            let span = (span.start, span.len());
            if at == 0 {
                LabeledSpan::new_primary_with_span(text, span)
            } else {
                LabeledSpan::new_with_span(text, span)
            }
        })))
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let contents = self.text.as_str().read_span(span, before, after)?;
        let (data, span, line) = (contents.data(), *contents.span(), contents.line());
        // miette's own count makes it join places that are far apart, and show what is between them.
        let breaks = memchr::memchr_iter(b'\n', data).count();
        let lines = breaks + usize::from(!data.ends_with(b"\n"));
        // The file is named above the first piece of it that is shown.
        let contents = if span.offset() <= self.first_piece {
            MietteSpanContents::new_named(self.name.clone(), data, span, line, contents.column(), lines)
        } else {
            MietteSpanContents::new(data, span, line, contents.column(), lines)
        };
        Ok(Box::new(contents))
    }
}
