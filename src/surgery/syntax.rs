//! What the YAML parser refuses, as a [`Diagnostic`]: its message and place, and a help for the mistakes that people
//! make in surgery files.

use serde_saphyr::{Error, Location, MessageFormatter, UserMessageFormatter};

use super::structure;
use crate::diagnostic::{Code, Diagnostic, Span, line_starts, words};

/// Fields whose values are patterns or close to them.
const PATTERN_FIELDS: [&str; 3] = ["pattern", "exclude", "source_key"];

/// Characters that may follow a backslash in a double-quoted scalar (YAML 1.2, section 5.7), line breaks included.
const ESCAPES: &str = "0abt\tnvfre \"/\\N_LPxuU\n\r";

/// The parser's error with a place and, where the mistake is a known one, what to do.
pub(super) fn diagnose(text: &str, error: &Error) -> Diagnostic {
    let error = error.without_snippet();
    let mut span = error.location().map_or(0..0, |location| place(text, &location));
    let mut help = None;
    let mut message = UserMessageFormatter.format_message(error).into_owned();
    if is_limit(error) {
        "the YAML is too large, too deep or repeats itself too often".clone_into(&mut message);
        help = Some("no surgery file needs so much: write the operations out, with fewer aliases".to_owned());
    } else if matches!(error, Error::MultipleDocuments { .. }) {
        help = Some("a file is one document: put all operations into one list, or split the file".to_owned());
    } else if message.to_ascii_lowercase().starts_with("recursive") {
        "an anchor is used within itself".clone_into(&mut message);
        help = Some("an alias stands for what ends before it: write this one out".to_owned());
    } else if let Error::UnsupportedTag { .. } = error {
        // The parser stops at what the tag stands before.
        let before = text.get(..span.start).unwrap_or_default().trim_end();
        let start = before.rfind(['\n', '\r', ' ', '\t', '[', '{', ',']).map_or(0, |at| at + 1);
        let tag = before.get(start..).filter(|tag| tag.starts_with('!'));
        if let Some(tag) = tag {
            span = start..start + tag.len();
        }
        message = tag.map_or_else(
            || "a tag that nothing knows".to_owned(),
            |tag| format!("unknown tag `{}`", words::excerpt(tag)),
        );
        help = Some(match unquoted_pattern(text, span.start) {
            Some(value) => quote_it(value),
            None => "values need no tag here: drop it; a text that begins with `!` must be quoted".to_owned(),
        });
    } else if let Some(place) = bad_escape(text, span.start) {
        span = place;
        help = Some(
            "use single quotes: within double quotes a backslash begins a YAML escape, and this is none"
                .to_owned(),
        );
    } else if let Some((place, sign)) = unexpected(text, &message, span.start) {
        span = place;
        message = format!("unexpected character `{}`", sign.escape_debug());
        help = Some(if sign.is_control() {
            "YAML has no such character: remove it, or write it as an escape in double quotes".to_owned()
        } else {
            format!("a text that begins with `{sign}` must be quoted")
        });
    } else if let Some(value) = unquoted_pattern(text, span.start) {
        help = Some(quote_it(value));
    } else if let Some(name) = unknown_anchor(text, error, span.start) {
        help = Some(format!(
            "no `&{}` stands above this place; a text that begins with `*` must be quoted",
            words::excerpt(name)
        ));
    }
    let help = help.unwrap_or_else(|| {
        let found = structure::understand(text, &message, span.start);
        span = found.span;
        found.help
    });
    Diagnostic::new(Code::Syntax, fragment(&message)).label(span, "").help(help)
}

/// A message as ours are: without a capital at its beginning, names and acronyms excepted.
fn fragment(message: &str) -> String {
    let mut signs = message.chars();
    match (signs.next(), signs.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => first.to_lowercase().chain(signs).collect(),
        _ => message.to_owned(),
    }
}

/// Bytes that are no text. The span is that of the first U+FFFD in their lossy rendering.
pub(super) fn not_utf8(bytes: &[u8], error: std::str::Utf8Error) -> Diagnostic {
    let at = error.valid_up_to();
    let utf16 = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
    let help = if utf16 { "the file seems to be UTF-16: save it as UTF-8" } else { "save the file as UTF-8" };
    let shown = at..at + char::REPLACEMENT_CHARACTER.len_utf8();
    Diagnostic::new(Code::Syntax, format!("the file is not valid UTF-8 from byte {} on", at + 1))
        .label(shown, "")
        .help(help)
}

/// A pattern in the quotes that suit it.
pub(super) fn quoted(pattern: &str) -> String {
    if pattern.contains(['\\', '"']) { format!("'{pattern}'") } else { format!("\"{pattern}\"") }
}

/// The pattern that stands unquoted on the line of `offset`, or on the one before (a parser often stops a line late).
fn unquoted_pattern(text: &str, offset: usize) -> Option<&str> {
    let (start, line) = line_at(text, offset);
    let here = pattern_value(line);
    here.or_else(|| {
        let (_, before) = line_at(text, start.checked_sub(1)?);
        // A plain alias is fine there, and so is a text that only holds such signs: the mistake is another one.
        pattern_value(before)
            .filter(|value| value.starts_with(['*', '[', '{', '?']))
            .filter(|value| !value.strip_prefix('*').is_some_and(is_name))
    })
}

/// The unquoted text with signs of a pattern that a line gives to a field, or to an item of a list.
fn pattern_value(line: &str) -> Option<&str> {
    let by_field = PATTERN_FIELDS.iter().find_map(|field| {
        let (before, value) = line.split_once(&format!("{field}:"))?;
        let begins = before.trim_end().is_empty() || before.ends_with([' ', '{', ',', '\t']);
        begins.then(|| if before.contains('{') { flow_value(value) } else { value })
    });
    let item = || line.trim_start().strip_prefix("- ").filter(|item| item.starts_with(['*', '[', '?']));
    let value = by_field.or_else(item)?;
    let value = value.split(" #").next()?.trim();
    (!value.starts_with(['"', '\'', '|', '>', '&']) && value.contains(['*', '?', '[', '{'])).then_some(value)
}

/// A value within `{…}` ends at the comma before the next field, or at the closing brace.
fn flow_value(rest: &str) -> &str {
    let rest = rest.split(", ").next().unwrap_or(rest).trim();
    rest.strip_suffix('}').unwrap_or(rest)
}

fn quote_it(pattern: &str) -> String {
    format!("quote the pattern, or YAML reads its signs as its own: {}", quoted(&words::excerpt(pattern)))
}

/// The character that the parser did not expect, with its place. Within a plain scalar it stops one before it.
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

/// The first escape that YAML does not know in the double-quoted scalar that begins at `start`.
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

fn unknown_anchor<'t>(text: &'t str, error: &Error, start: usize) -> Option<&'t str> {
    let name = text.get(start..)?.strip_prefix('*')?;
    let name = name.split([' ', '\n', '\r', ',', ']', '}']).next()?;
    (matches!(error, Error::UnknownAnchor { .. }) && !name.is_empty()).then_some(name)
}

/// The line that holds a byte, and where it begins.
fn line_at(text: &str, offset: usize) -> (usize, &str) {
    let offset = text.floor_char_boundary(offset);
    let start = text.get(..offset).and_then(|before| before.rfind(['\n', '\r'])).map_or(0, |at| at + 1);
    (start, first_line(text.get(start..).unwrap_or_default()))
}

/// The character at the line and column where the parser stopped; its errors have no byte offsets.
fn place(text: &str, location: &Location) -> Span {
    let line = usize::try_from(location.line()).unwrap_or(1).saturating_sub(1);
    let column = usize::try_from(location.column()).unwrap_or(1).saturating_sub(1);
    let start = line_starts(text).nth(line).unwrap_or(0);
    let within = first_line(text.get(start..).unwrap_or_default());
    let (at, length) =
        within.char_indices().nth(column).map_or((within.len(), 0), |(at, sign)| (at, sign.len_utf8()));
    start + at..start + at + length
}

fn first_line(text: &str) -> &str {
    text.split(['\n', '\r']).next().unwrap_or_default()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|sign| sign.is_alphanumeric() || sign == '_' || sign == '-')
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
