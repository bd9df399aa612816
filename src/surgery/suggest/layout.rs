//! Common mistakes in a file's layout: their place, and what to do.
//!
//! A YAML parser reports where it gave up, often a line late and in terms of its grammar. The lines around that place
//! show what was meant.

use super::super::language::Field;
use crate::diagnostic::Span;
use crate::diagnostic::words::{count, excerpt};

/// A mistake that is understood.
pub(in crate::surgery) struct Found {
    pub(in crate::surgery) span: Span,
    pub(in crate::surgery) help: String,
}

/// The help where nothing more specific is known.
const GENERAL: &str = "write one `name: value` per line, align the fields of an operation, and begin each operation with `- `; \
                       `mlxcel surgery explain syntax` shows common mistakes";

/// The mistake behind a parser's message, found on the line where the parser stopped or the one before.
pub(in crate::surgery) fn explain_layout(text: &str, message: &str, stopped: usize) -> Found {
    let here = Line::at(text, stopped);
    let before = here.before(text);
    let lines = || std::iter::once(&here).chain(&before);
    if let Some(at) = tab(text, message, &here).or_else(|| tab(text, "", before.as_ref()?)) {
        return Found { span: at..at + 1, help: "replace the tab with spaces".to_owned() };
    }
    let found = lines().find_map(Line::odd_space).or_else(|| lines().find_map(Line::missing_space));
    let found = found.or_else(|| lines().find_map(Line::missing_colon));
    let found = found.or_else(|| by_message(text, message, stopped, &here));
    let found = found.or_else(|| before.as_ref().and_then(|before| here.indentation(before, text)));
    found.unwrap_or_else(|| Found { span: here.sign(stopped), help: GENERAL.to_owned() })
}

/// The tab in the indentation of the line where the parser stopped.
fn tab(text: &str, message: &str, here: &Line<'_>) -> Option<usize> {
    let leading = |line: &Line<'_>| {
        let blank = line.text.len() - line.text.trim_start_matches([' ', '\t', '-']).len();
        line.text.get(..blank)?.find('\t').map(|at| line.start + at)
    };
    leading(here).or_else(|| {
        message.contains("tab").then(|| leading(&Line::at(text, here.start + here.text.len() + 1))).flatten()
    })
}

/// The mistakes that the parser's message identifies.
fn by_message(text: &str, message: &str, stopped: usize, here: &Line<'_>) -> Option<Found> {
    let found = |help: &str| Some(Found { span: here.sign(stopped), help: help.to_owned() });
    let has = |part: &str| message.contains(part);
    if has("nclosed quote") {
        return found(match text.get(stopped..) {
            Some(rest) if rest.starts_with('\'') => {
                "close it with `'`; within single quotes, write `''` for `'`"
            }
            _ => "close it with `\"`",
        });
    }
    if has("nclosed bracket") {
        return found(match text.get(stopped..) {
            Some(rest) if rest.starts_with('{') => "close it with `}`",
            _ => "close it with `]`",
        });
    }
    if has("expected ','") {
        return found("put a comma before this, or quote text that contains spaces or `: `");
    }
    if has("placement of ':'") {
        let open = text.get(..stopped)?.rfind(['[', '{'])?;
        let close = if text[open..].starts_with('[') { ']' } else { '}' };
        let help = format!("close it with `{close}` before the next field");
        return Some(Found { span: open..open + 1, help });
    }
    if has("isplaced bracket") {
        return found("remove it, or quote the text");
    }
    if has("trailing content") {
        return found("enclose the whole value in quotes");
    }
    if has("block scalar") {
        return found("quote text that begins with `|` or `>`");
    }
    if has("sequence entries are not allowed") {
        return found("begin the list on the next line, with `- ` before each operation");
    }
    let first = Line::at(text, 0);
    if first.text.starts_with('%') {
        let help = "remove the line; surgery files need no directives".to_owned();
        return Some(Found { span: 0..first.text.len(), help });
    }
    let (name, value) = here.content().split_once(": ")?;
    let value = value.split(" #").next()?.trim();
    (has("mapping values")
        && !value.starts_with(['"', '\''])
        && (value.contains(": ") || value.ends_with(':')))
    .then(|| Found {
        span: here.place(here.content().find(value).unwrap_or_default(), value.len()),
        help: format!("quote a value that contains `: `: `{name}: \"{}\"`", excerpt(value)),
    })
}

/// A line of the file.
struct Line<'t> {
    /// The offset of its first byte.
    start: usize,
    text: &'t str,
    /// Bytes of indentation before a dash or the text.
    indent: usize,
    /// Bytes before the text: indentation, and the dashes of lists.
    column: usize,
}

impl<'t> Line<'t> {
    /// The line that a byte is on.
    fn at(text: &'t str, offset: usize) -> Self {
        let offset = text.floor_char_boundary(offset.min(text.len()));
        let start = text[..offset].rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let line = text[start..].split(['\n', '\r']).next().unwrap_or_default();
        let indent = line.len() - line.trim_start_matches(' ').len();
        let mut column = indent;
        while let Some(rest) = line[column..].strip_prefix("- ") {
            column = line.len() - rest.trim_start_matches(' ').len();
        }
        Self { start, text: line, indent, column }
    }

    /// The nearest line above that is not blank or a comment.
    fn before(&self, text: &'t str) -> Option<Self> {
        let mut line = Self::at(text, self.start.checked_sub(1)?);
        while line.content().is_empty() || line.content().starts_with('#') {
            line = Self::at(text, line.start.checked_sub(1)?);
        }
        Some(line)
    }

    /// The text after indentation and dashes.
    fn content(&self) -> &'t str {
        self.text[self.column..].trim_end()
    }

    /// Whether it begins a list item.
    fn is_item(&self) -> bool {
        self.column > self.indent
    }

    /// The span of a part of the content.
    fn place(&self, from: usize, length: usize) -> Span {
        let start = self.start + self.column + from;
        start..start + length
    }

    /// The character at a byte of the text.
    fn sign(&self, offset: usize) -> Span {
        let within = self.text.get(offset.saturating_sub(self.start)..).unwrap_or_default();
        offset..offset + within.chars().next().map_or(0, char::len_utf8)
    }

    /// The first word of the content, if it names a field.
    fn field(&self) -> Option<&'t str> {
        let content = self.content().trim_start_matches('-');
        let end = content.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(content.len());
        let word = &content[..end];
        (Field::named(word).is_some() || matches!(word, "version" | "operations")).then_some(word)
    }

    /// A space in the indentation that YAML does not treat as one.
    fn odd_space(&self) -> Option<Found> {
        let blank = self.text.len() - self.text.trim_start().len();
        let odd = self.text[..blank].char_indices().find(|(_, sign)| !sign.is_ascii())?;
        let start = self.start + odd.0;
        let help = "replace this character with a plain space (it may be a no-break space)".to_owned();
        Some(Found { span: start..start + odd.1.len_utf8(), help })
    }

    /// `factor:2`, `-op: scale`, `--`.
    fn missing_space(&self) -> Option<Found> {
        let content = self.content();
        if content.len() > 1 && content.bytes().all(|byte| byte == b'-') && content.len() != 3 {
            let help = "remove the line; `---` begins a document, and `- ` a list item";
            return Some(Found { span: self.place(0, content.len()), help: help.to_owned() });
        }
        let field = self.field()?;
        let bare = content.trim_start_matches('-');
        if bare.len() < content.len() {
            let help = format!("put a space after the dash: `- {}`", excerpt(bare));
            return Some(Found { span: self.place(0, content.len() - bare.len() + field.len()), help });
        }
        let value = content[field.len()..].strip_prefix(':')?;
        (!value.is_empty() && !value.starts_with([' ', '\t'])).then(|| Found {
            span: self.place(0, content.len()),
            help: format!("put a space after the colon: `{field}: {}`", excerpt(value)),
        })
    }

    /// `op scale`, or `operations` alone.
    fn missing_colon(&self) -> Option<Found> {
        let field = self.field()?;
        let rest = &self.content()[field.len()..];
        let value = rest.trim_start_matches([' ', '=']);
        (rest.is_empty() || rest.starts_with([' ', '=']) && !value.starts_with(':')).then(|| Found {
            span: self.place(0, field.len()),
            help: format!(
                "put a colon after the name: `{}`",
                format!("{field}: {}", excerpt(value)).trim_end()
            ),
        })
    }

    /// A line that is not aligned with those it belongs to.
    fn indentation(&self, before: &Self, text: &str) -> Option<Found> {
        if self.is_item() && before.field() == Some("version") {
            let help = match self.field() {
                Some("operations") => "write `operations` at the left margin, without a dash",
                _ => "put `operations:` on a line of its own above the list",
            };
            return Some(Found { span: self.key(), help: help.to_owned() });
        }
        if self.is_item() {
            return self.item(text);
        }
        if self.column == before.column {
            return None;
        }
        if let Some("version" | "operations") = self.field() {
            let help = "write `version` and `operations` at the left margin";
            return Some(Found { span: self.key(), help: help.to_owned() });
        }
        Some(self.as_above(before))
    }

    /// A list item that is not aligned with the one above, or whose fields are not.
    fn item(&self, text: &str) -> Option<Found> {
        let mut below = None;
        let mut other = self.before(text)?;
        while !other.is_item() {
            let above = other.before(text)?;
            below = Some(std::mem::replace(&mut other, above));
        }
        if other.indent == self.indent {
            let stray = below.filter(|field| field.column <= self.indent)?;
            return Some(stray.as_above(&other));
        }
        let help = format!(
            "align the dashes of a list: indent this one by {}, as the one above",
            count(other.indent, "space")
        );
        Some(Found { span: self.key(), help })
    }

    /// A field that belongs below another one.
    fn as_above(&self, above: &Self) -> Found {
        let help = format!(
            "align the fields of an operation: indent this one by {}, as `{}` above",
            count(above.column, "space"),
            excerpt(above.content().split(':').next().unwrap_or_default())
        );
        Found { span: self.key(), help }
    }

    /// The span of the content up to its colon.
    fn key(&self) -> Span {
        self.place(0, self.content().split(':').next().unwrap_or_default().len())
    }
}
