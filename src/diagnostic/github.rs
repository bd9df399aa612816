//! Diagnostics as workflow commands, which GitHub shows as annotations.

use std::fmt::Write;

use super::position::Lines;
use super::{Diagnostic, Severity, Source, uri};

/// One line per diagnostic: `::error file=…,line=…,endLine=…,col=…,endColumn=…,title=…::message`. A diagnostic without
/// labels names only the file, without a source nothing. A note is a `notice`.
#[must_use]
pub fn github(diagnostics: &[Diagnostic], source: Option<&Source>) -> String {
    let lines = source.map(|source| Lines::new(&source.text));
    let mut out = String::new();
    for diagnostic in diagnostics {
        let mut properties = Vec::new();
        if let Some(source) = source {
            properties.push(("file", uri::plain(&source.path)));
        }
        if let (Some(lines), Some(label)) = (&lines, diagnostic.labels.first()) {
            let (start, end) = lines.range(&label.span);
            properties.push(("line", start.line.to_string()));
            properties.push(("endLine", end.line.to_string()));
            // GitHub takes columns only within one line.
            if start.line == end.line {
                properties.push(("col", start.column.to_string()));
                properties.push(("endColumn", end.column.to_string()));
            }
        }
        properties.push(("title", diagnostic.code.to_string()));
        let properties: Vec<String> =
            properties.into_iter().map(|(name, value)| format!("{name}={}", property(&value))).collect();
        let command = match diagnostic.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Advice => "notice",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "::{command} {}::{}", properties.join(","), data(&diagnostic.with_help()));
    }
    out
}

/// GitHub's escapes for the text of a command. Other control characters, which file names may have, are replaced.
fn data(text: &str) -> String {
    let escaped = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    escaped.replace(|c: char| c.is_control() && c != '\t', "\u{fffd}")
}

/// GitHub's escapes for a property, which ends at `,` or `:`.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Code;

    #[test]
    fn a_diagnostic_is_one_line_with_special_characters_escaped() {
        let source = Source { path: "./a,b:c%.yaml".into(), text: "version: 1\nx: é\n".into() };
        let diagnostic = Diagnostic::new(Code::UnknownField, "50% of\r\n`x\u{1b}[31m`: wrong, really")
            .label(11..12, "")
            .help("a: b, c");
        assert_eq!(
            github(&[diagnostic], Some(&source)),
            "::error file=a%2Cb%3Ac%25.yaml,line=2,endLine=2,col=1,endColumn=2,title=surgery%3A%3Aunknown_field\
             ::50%25 of%0D%0A`x\u{fffd}[31m`: wrong, really%0Ahelp: a: b, c\n"
        );
    }

    #[test]
    fn a_span_over_several_lines_has_no_columns() {
        let source = Source { path: "a.yaml".into(), text: "a\nb\n".into() };
        let wide = Diagnostic::new(Code::Syntax, "x").label(0..3, "");
        let advice = Diagnostic::new(Code::NoEffect, "y");
        assert_eq!(
            github(&[wide, advice.clone()], Some(&source)),
            "::error file=a.yaml,line=1,endLine=2,title=surgery%3A%3Asyntax::x\n\
             ::notice file=a.yaml,title=surgery%3A%3Ano_effect::y\n"
        );
        assert_eq!(github(&[advice], None), "::notice title=surgery%3A%3Ano_effect::y\n");
    }
}
