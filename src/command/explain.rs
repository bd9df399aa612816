//! `mlxcel surgery explain`: the page of a code, or the list of all.

use anstyle::{AnsiColor, Style};

use super::exit::Exit;
use super::failure::Outcome;
use super::output;
use crate::cli::ExplainArgs;
use crate::diagnostic::{BOLD, Code, DIM, Look, Severity, did_you_mean, explain, nearest, rows, wrap};

pub(super) fn run(args: &ExplainArgs) -> Outcome {
    let Some(written) = &args.code else {
        output::stdout(&list())?;
        return Ok(Exit::Success);
    };
    let Some(code) = Code::named(&written.to_lowercase()) else {
        return Ok(unknown(written));
    };
    let page = explain(code);
    // Markdown, unless standard output is a terminal.
    output::stdout(&output::terminal_look().map_or_else(|| page.clone(), |look| drawn(&page, look)))?;
    Ok(Exit::Success)
}

/// A code that does not exist is a usage error.
fn unknown(written: &str) -> Exit {
    let lower = written.to_lowercase();
    let name = lower.rsplit_once("::").map_or(lower.as_str(), |(_, name)| name);
    let near = nearest(name, Code::ALL.iter().map(|code| code.name()));
    let help = did_you_mean(near, "`mlxcel surgery explain` lists all codes");
    output::stderr(&format!("error: unknown code `{written}`\n\n  {help}\n"));
    Exit::UsageError
}

/// A page of Markdown for a terminal: paragraphs wrapped, headings and examples in colour.
fn drawn(page: &str, look: Look) -> String {
    let mut out = String::new();
    let mut paragraph = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            flush(&mut paragraph, &mut out, look);
            let (word, style) = match kind.split_once(' ') {
                Some((_, "wrong")) => ("wrong", AnsiColor::Red.on_default()),
                Some((_, "right")) => ("right", AnsiColor::Green.on_default()),
                _ => ("", Style::new()),
            };
            if !word.is_empty() {
                out.extend(["  ", &look.paint(style, word), "\n"]);
            }
            for line in lines.by_ref().take_while(|line| *line != "```") {
                out.extend(["    ", &look.paint(DIM, line), "\n"]);
            }
        } else if let Some(heading) = line.strip_prefix("# ") {
            for line in wrap(heading, look.width) {
                out += &(look.paint(BOLD, &line) + "\n");
            }
        } else if line.is_empty() {
            flush(&mut paragraph, &mut out, look);
            out.push('\n');
        } else {
            if line.starts_with(['-', '|']) {
                flush(&mut paragraph, &mut out, look);
            }
            paragraph.extend([line, " "]);
        }
    }
    flush(&mut paragraph, &mut out, look);
    out
}

/// Ends a paragraph.
fn flush(paragraph: &mut String, out: &mut String, look: Look) {
    let text = look.text(&std::mem::take(paragraph));
    for line in wrap(&text, look.width.min(100)) {
        out.extend([line.as_str(), "\n"]);
    }
}

fn list() -> String {
    let look = output::look();
    let mut out = String::new();
    for (severity, heading) in
        [(Severity::Error, "errors"), (Severity::Warning, "warnings"), (Severity::Advice, "notes")]
    {
        let codes = Code::ALL.iter().filter(|code| code.severity() == severity);
        let table: Vec<_> = codes.map(|code| (code.name().to_owned(), code.summary().to_owned())).collect();
        if !out.is_empty() {
            out.push('\n');
        }
        out += &(look.paint(BOLD, heading) + "\n" + &rows(&table, 2, look));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::columns;

    #[test]
    fn every_page_fits_a_narrow_terminal_but_for_its_examples() {
        for &code in Code::ALL {
            for width in [30, 80] {
                let text = drawn(&explain(code), Look { width, ..Look::PLAIN });
                let wide = text.lines().find(|line| !line.starts_with("    ") && columns(line) > width);
                assert_eq!(wide, None, "{code}");
                assert!(!text.contains("```") && !text.contains("\n\n\n"), "{text}");
            }
        }
    }
}
