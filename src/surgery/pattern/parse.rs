//! Parsing a pattern, character by character, up to the first mistake.

use super::part::Part;
use crate::diagnostic::Span;

/// Bytes of the longest pattern. Keys have about a hundred.
const MAX_LENGTH: usize = 4096;
/// Values that the numeric ranges of one pattern may have together.
const MAX_VALUES: u64 = 4096;
/// How deep braces may be nested.
const MAX_DEPTH: usize = 8;

/// A mistake in a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// Byte offsets in the pattern.
    pub span: Span,
    /// What is wrong: a lowercase fragment.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
}

/// A parsed pattern.
pub(super) struct Parsed {
    pub(super) parts: Vec<Part>,
    pub(super) wildcards: usize,
    pub(super) braced_star: Option<Span>,
    /// The outermost braces, and the alternatives in each.
    pub(super) groups: Vec<(Span, Vec<Span>)>,
}

/// Parses a pattern.
pub(super) fn parse(text: &str) -> Result<Parsed, PatternError> {
    if text.is_empty() {
        return Err(error(0..0, "the pattern is empty", "write `*` to match every key"));
    }
    if text.len() > MAX_LENGTH {
        return Err(error(
            MAX_LENGTH..text.len(),
            format!("the pattern is longer than {MAX_LENGTH} bytes"),
            "use wildcards or several operations",
        ));
    }
    if let Some((at, sign)) = text.char_indices().find(|(_, sign)| sign.is_control()) {
        return Err(error(
            at..at + sign.len_utf8(),
            if sign == '\n' { "the pattern has a line break" } else { "the pattern has a control character" },
            "write the pattern in one line, in quotes",
        ));
    }
    let mut reader =
        Reader { text, at: 0, depth: 0, wildcards: 0, values: 0, braced_star: None, groups: Vec::new() };
    let parts = reader.sequence()?;
    Ok(Parsed { parts, wildcards: reader.wildcards, braced_star: reader.braced_star, groups: reader.groups })
}

/// A pattern being parsed, and what is known of it so far.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    wildcards: usize,
    values: u64,
    braced_star: Option<Span>,
    groups: Vec<(Span, Vec<Span>)>,
}

impl Reader<'_> {
    /// Up to the end, or within braces up to the `,` or `}` that ends the alternative.
    fn sequence(&mut self) -> Result<Vec<Part>, PatternError> {
        let mut parts = Vec::new();
        while let Some(sign) = self.peek() {
            let start = self.at;
            match sign {
                ',' | '}' if self.depth > 0 => break,
                '}' => {
                    return Err(error(
                        start..start + 1,
                        "unmatched `}`",
                        "write `\\}` where the key itself has a brace",
                    ));
                }
                '{' => parts.push(self.braces()?),
                '[' => parts.push(self.class()?),
                '*' => {
                    self.bump();
                    self.wildcards += 1;
                    if self.depth > 0 && self.braced_star.is_none() {
                        self.braced_star = Some(start..self.at);
                    }
                    parts.push(Part::Star);
                }
                '?' => {
                    self.bump();
                    parts.push(Part::One);
                }
                _ => {
                    let sign = self.literal()?;
                    match parts.last_mut() {
                        Some(Part::Text(text)) => text.push(sign),
                        _ => parts.push(Part::Text(sign.to_string())),
                    }
                }
            }
        }
        Ok(parts)
    }

    /// One character, escaped or not.
    fn literal(&mut self) -> Result<char, PatternError> {
        let start = self.at;
        match self.bump() {
            Some('\\') => self.bump().ok_or_else(|| {
                error(start..self.at, "a `\\` at the end escapes nothing", "remove it, or write `\\\\`")
            }),
            Some(sign) => Ok(sign),
            None => Err(error(start..start, "the pattern is incomplete", "complete it")),
        }
    }

    /// `[…]`. A `]` at the beginning and a `-` at either end are literal.
    fn class(&mut self) -> Result<Part, PatternError> {
        let open = self.at;
        self.bump();
        let negated = matches!(self.peek(), Some('!' | '^'));
        if negated {
            self.bump();
        }
        let mut ranges = Vec::new();
        loop {
            let start = self.at;
            match self.peek() {
                None => {
                    return Err(error(
                        open..open + 1,
                        "unclosed `[`",
                        "close it with `]`, or write `\\[` for a literal bracket",
                    ));
                }
                Some(']') if !ranges.is_empty() => {
                    self.bump();
                    return Ok(Part::Class { negated, ranges });
                }
                Some('[') if self.rest().starts_with("[:") => {
                    return Err(error(
                        start..start + 2,
                        "patterns have no named character classes",
                        "write the range, such as `[a-z]` or `[0-9]`",
                    ));
                }
                Some(_) => {}
            }
            let low = self.literal()?;
            let mut high = low;
            if self.peek() == Some('-') && !self.rest().starts_with("-]") && self.rest().len() > 1 {
                self.bump();
                high = self.literal()?;
            }
            if high < low {
                return Err(error(
                    start..self.at,
                    format!("the range from `{low}` to `{high}` is empty"),
                    format!("write `{high}-{low}`"),
                ));
            }
            ranges.push((low, high));
        }
    }

    /// `{a,b}`; an alternative may be a range of numbers, such as `0..15`.
    fn braces(&mut self) -> Result<Part, PatternError> {
        let open = self.at;
        self.bump();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(error(open..self.at, "braces are nested too deeply", "write the alternatives out"));
        }
        let mut alternatives = Vec::new();
        let mut texts = Vec::new();
        loop {
            let start = self.at;
            let parts = self.sequence()?;
            let span = start..self.at;
            match self.bump() {
                None => {
                    return Err(error(
                        open..open + 1,
                        "unclosed `{`",
                        "close it with `}`, or write `\\{` where the key itself has a brace",
                    ));
                }
                Some(_) if parts.is_empty() => {
                    return Err(error(
                        span.start.saturating_sub(1)..self.at,
                        "an alternative is empty",
                        "write the alternative, or remove the comma; to match nothing or something, use two operations",
                    ));
                }
                Some(end) => {
                    alternatives.push(match self.range(&span)? {
                        Some(numbers) => vec![numbers],
                        None => parts,
                    });
                    texts.push(span);
                    if end == '}' {
                        break;
                    }
                }
            }
        }
        self.depth -= 1;
        if self.depth == 0 {
            self.groups.push((open..self.at, texts));
        }
        Ok(Part::Either(alternatives))
    }

    /// An alternative written as `a..b`.
    fn range(&mut self, span: &Span) -> Result<Option<Part>, PatternError> {
        let text = self.text.get(span.clone()).unwrap_or_default();
        // Nested braces and classes may contain dots.
        let (Some((low, high)), true) = (text.split_once(".."), outside_groups(text).contains("..")) else {
            return Ok(None);
        };
        let digits = |side: &str| !side.is_empty() && side.bytes().all(|byte| byte.is_ascii_digit());
        let refuse = |message: String, help: String| Err(error(span.clone(), message, help));
        if !digits(low) || !digits(high) {
            return refuse(
                format!("`{text}` is not a range of numbers"),
                "write whole numbers on both sides, such as `{0..15}`; write `\\.` for a dot of the key"
                    .to_owned(),
            );
        }
        if let Some(padded) = [low, high].into_iter().find(|side| side.len() > 1 && side.starts_with('0')) {
            return refuse(
                format!("`{padded}` has leading zeros"),
                "write the number without them, as keys do".to_owned(),
            );
        }
        let (Ok(from), Ok(to)) = (low.parse::<u64>(), high.parse::<u64>()) else {
            return refuse("a number is too large".to_owned(), "use smaller numbers".to_owned());
        };
        if from > to {
            return refuse(
                format!("the range from {from} to {to} is empty"),
                format!("write `{{{to}..{from}}}`"),
            );
        }
        self.values = self.values.saturating_add((to - from).saturating_add(1));
        if self.values > MAX_VALUES {
            return refuse(
                format!("the range has more than {MAX_VALUES} values"),
                "use `*` to match every number".to_owned(),
            );
        }
        Ok(Some(Part::Numbers(from..=to)))
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let sign = self.peek()?;
        self.at += sign.len_utf8();
        Some(sign)
    }
}

/// An alternative without nested braces and brackets, and without escapes.
fn outside_groups(alternative: &str) -> String {
    let (mut braces, mut class, mut outside) = (0_usize, false, String::new());
    let mut signs = alternative.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => {
                signs.next();
            }
            ']' => class = false,
            _ if class => {}
            '[' => class = true,
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ if braces == 0 => {
                outside.push(sign);
                continue;
            }
            _ => {}
        }
        outside.push(' ');
    }
    outside
}

fn error(span: Span, message: impl Into<String>, help: impl Into<String>) -> PatternError {
    PatternError { span, message: message.into(), help: Some(help.into()) }
}
