//! Patterns that lack quotes: where they are, and what to write instead.

use crate::diagnostic::words::excerpt;

/// Fields whose values are patterns or close to them.
const PATTERN_FIELDS: [&str; 3] = ["pattern", "exclude", "source_key"];

/// A pattern in the quotes that suit it.
pub(in crate::surgery) fn quoted(pattern: &str) -> String {
    if pattern.contains(['\\', '"']) { format!("'{pattern}'") } else { format!("\"{pattern}\"") }
}

/// The help for a pattern without quotes.
pub(in crate::surgery) fn quote_pattern(pattern: &str) -> String {
    format!("quote the pattern: {}", quoted(&excerpt(pattern)))
}

/// The unquoted pattern on the line of `offset`, or on the line before (parsers often stop a line late).
pub(in crate::surgery) fn unquoted_pattern(text: &str, offset: usize) -> Option<&str> {
    let (start, line) = line_at(text, offset);
    pattern_value(line).or_else(|| {
        let (_, before) = line_at(text, start.checked_sub(1)?);
        // There, a plain alias or a pattern character in the middle of a text is no error.
        pattern_value(before)
            .filter(|value| value.starts_with(['*', '[', '{', '?']))
            .filter(|value| !value.strip_prefix('*').is_some_and(is_alias_name))
    })
}

/// The source of a list or mapping in brackets, up to the closing bracket.
pub(in crate::surgery) fn flow_text(text: &str, start: usize) -> Option<&str> {
    let rest = text.get(start..)?.lines().next()?;
    let mut depth = 0_usize;
    for (at, sign) in rest.char_indices() {
        match sign {
            '[' | '{' => depth += 1,
            ']' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return rest.get(..=at);
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The unquoted text with pattern characters that a line gives to a field or a list item.
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

/// The line that contains a byte, and its start.
fn line_at(text: &str, offset: usize) -> (usize, &str) {
    let offset = text.floor_char_boundary(offset);
    let start = text.get(..offset).and_then(|before| before.rfind(['\n', '\r'])).map_or(0, |at| at + 1);
    let line = text.get(start..).unwrap_or_default().split(['\n', '\r']).next();
    (start, line.unwrap_or_default())
}

fn is_alias_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|sign| sign.is_alphanumeric() || sign == '_' || sign == '-')
}
