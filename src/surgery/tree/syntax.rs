//! Errors of the YAML parser as [`Diagnostic`]s, with help for the common mistakes in surgery files.

use serde_saphyr::{Error, Location, MessageFormatter, UserMessageFormatter};

use super::super::suggest::{explain_layout, quote_pattern, unquoted_pattern};
use crate::diagnostic::words::excerpt;
use crate::diagnostic::{Code, Diagnostic, Span, line_starts};

/// Characters that may follow a backslash in a double-quoted scalar (YAML 1.2, section 5.7), line breaks included.
const ESCAPES: &str = "0abt\tnvfre \"/\\N_LPxuU\n\r";

/// The parser's error with its place and, for common mistakes, what to do.
pub(in crate::surgery) fn diagnose(text: &str, error: &Error) -> Diagnostic {
    let error = error.without_snippet();
    let at = error.location().map_or(0..0, |location| place(text, &location));
    let message = UserMessageFormatter.format_message(error).into_owned();
    let found = by_error(text, error, &at, &message).unwrap_or_else(|| {
        let layout = explain_layout(text, &message, at.start);
        Explained { span: layout.span, message, help: layout.help }
    });
    Diagnostic::new(Code::Syntax, lowercase_start(&found.message)).label(found.span, "").help(found.help)
}

/// A parser's error in the words of surgery files.
struct Explained {
    span: Span,
    message: String,
    help: String,
}

/// The explanation of an error that the parser's message, or the text at its place, identifies.
fn by_error(text: &str, error: &Error, at: &Span, message: &str) -> Option<Explained> {
    let here = |message: &str, help: &str| {
        Some(Explained { span: at.clone(), message: message.to_owned(), help: help.to_owned() })
    };
    if is_limit(error) {
        return here(
            "the YAML is too large, too deeply nested or repeats aliases too often",
            "write the operations out, with fewer aliases",
        );
    }
    if matches!(error, Error::MultipleDocuments { .. }) {
        return here(message, "put all operations into one list, or split the file");
    }
    if message.to_ascii_lowercase().starts_with("recursive") {
        return here("an anchor is used within itself", "write this value out instead of using an alias");
    }
    if matches!(error, Error::UnsupportedTag { .. }) {
        return Some(unknown_tag(text, at));
    }
    if let Some(span) = bad_escape(text, at.start) {
        let help = "use single quotes; within double quotes, a backslash begins a YAML escape, and YAML does not \
                    know this one";
        return Some(Explained { span, message: message.to_owned(), help: help.to_owned() });
    }
    if let Some((span, sign)) = unexpected(text, message, at.start) {
        let message = format!("unexpected character `{}`", sign.escape_debug());
        let help = if sign.is_control() {
            "remove it, or write it as an escape in double quotes".to_owned()
        } else {
            format!("quote text that begins with `{sign}`")
        };
        return Some(Explained { span, message, help });
    }
    let anchor = unknown_anchor(text, error, at.start).map(excerpt);
    let message = match &anchor {
        Some(name) => format!("unquoted `*` starts a YAML alias, and `{name}` is not defined"),
        None => message.to_owned(),
    };
    let help = match unquoted_pattern(text, at.start) {
        Some(pattern) => quote_pattern(pattern),
        None => format!("define `&{}` above this line, or quote text that begins with `*`", anchor?),
    };
    Some(Explained { span: at.clone(), message, help })
}

/// A tag that YAML does not know. The parser stops after it.
fn unknown_tag(text: &str, at: &Span) -> Explained {
    let before = text.get(..at.start).unwrap_or_default().trim_end();
    let start = before.rfind(['\n', '\r', ' ', '\t', '[', '{', ',']).map_or(0, |at| at + 1);
    let tag = before.get(start..).filter(|tag| tag.starts_with('!'));
    let span = tag.map_or_else(|| at.clone(), |tag| start..start + tag.len());
    let message =
        tag.map_or_else(|| "unknown tag".to_owned(), |tag| format!("unknown tag `{}`", excerpt(tag)));
    let help = match unquoted_pattern(text, span.start) {
        Some(pattern) => quote_pattern(pattern),
        None => "remove the tag, or quote text that begins with `!`".to_owned(),
    };
    Explained { span, message, help }
}

/// A message without its initial capital, except in names and acronyms.
fn lowercase_start(message: &str) -> String {
    let mut signs = message.chars();
    match (signs.next(), signs.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => first.to_lowercase().chain(signs).collect(),
        _ => message.to_owned(),
    }
}

/// The refusal of bytes that are not UTF-8. The span is the first U+FFFD of their lossy decoding.
pub(in crate::surgery) fn not_utf8(bytes: &[u8], error: std::str::Utf8Error) -> Diagnostic {
    let at = error.valid_up_to();
    let utf16 = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
    let help = if utf16 { "save the file as UTF-8; it seems to be UTF-16" } else { "save the file as UTF-8" };
    let shown = at..at + char::REPLACEMENT_CHARACTER.len_utf8();
    Diagnostic::new(Code::Syntax, format!("the file is not valid UTF-8 from byte {} on", at + 1))
        .label(shown, "")
        .help(help)
}

/// The character that the parser did not expect, with its place. In a plain scalar the parser stops one before it.
fn unexpected(text: &str, message: &str, start: usize) -> Option<(Span, char)> {
    if !message.to_ascii_lowercase().starts_with("unexpected character") {
        return None;
    }
    let rest = text.get(start..)?;
    let line = rest.split(['\n', '\r']).next().unwrap_or_default();
    let control = line.char_indices().find(|(_, sign)| sign.is_control() && *sign != '\t');
    let (at, sign) = control.or_else(|| rest.char_indices().next())?;
    Some((start + at..start + at + sign.len_utf8(), sign))
}

/// The first escape unknown to YAML in the double-quoted scalar that begins at `start`.
fn bad_escape(text: &str, start: usize) -> Option<Span> {
    let body = text.get(start..)?.strip_prefix('"')?;
    let mut signs = body.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '"' => return None,
            '\\' => {
                let (_, escaped) = signs.next()?;
                if !ESCAPES.contains(escaped) {
                    let from = start + 1 + at;
                    return Some(from..from + 1 + escaped.len_utf8());
                }
            }
            _ => {}
        }
    }
    None
}

/// The name of the alias at `start`, if it is what the parser does not know.
fn unknown_anchor<'t>(text: &'t str, error: &Error, start: usize) -> Option<&'t str> {
    let name = text.get(start..)?.strip_prefix('*')?;
    let name = name.split([' ', '\n', '\r', ',', ']', '}']).next()?;
    (matches!(error, Error::UnknownAnchor { .. }) && !name.is_empty()).then_some(name)
}

/// The character where the parser stopped. Its errors have lines and columns, no byte offsets.
fn place(text: &str, location: &Location) -> Span {
    let line = usize::try_from(location.line()).unwrap_or(1).saturating_sub(1);
    let column = usize::try_from(location.column()).unwrap_or(1).saturating_sub(1);
    let start = line_starts(text).nth(line).unwrap_or(0);
    let within = text.get(start..).unwrap_or_default().split(['\n', '\r']).next().unwrap_or_default();
    let (at, length) =
        within.char_indices().nth(column).map_or((within.len(), 0), |(at, sign)| (at, sign.len_utf8()));
    start + at..start + at + length
}

fn is_limit(error: &Error) -> bool {
    match error {
        Error::AliasError { error, .. } => is_limit(error),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => true,
        Error::ExternalMessage { msg, .. } => msg.contains("recursion limit"),
        _ => false,
    }
}
