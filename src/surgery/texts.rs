//! Values that are texts: names, paths, patterns and templates.

use std::path::{Path, PathBuf};

use super::fields::Field;
use super::node::{Node, Value};
use super::pattern::PatternError;
use super::report::Report;
use super::syntax::quoted;
use super::values::expected;
use super::{Pattern, Spanned, Template};
use crate::diagnostic::{Code, Diagnostic, Span, words};

/// Whether a `replace` has a capture for each `*` of its `source_key`; if not, that is reported.
pub(super) fn check_captures(
    pattern: &Spanned<Pattern>,
    source_key: &Spanned<Template>,
    report: &mut Report<'_>,
) -> bool {
    if let Some(star) = pattern.value.braced_star() {
        let help =
            "a `*` in braces has no place among the captures: write one operation for each alternative";
        let error = PatternError {
            span: star,
            message: "`*` cannot stand within braces in a `replace`".to_owned(),
            help: Some(help.to_owned()),
        };
        bad_glob(&pattern.with(()), pattern.value.as_str(), error, report);
        return false;
    }
    let (have, need) = (pattern.value.wildcards(), source_key.value.wildcards());
    if have == need {
        return true;
    }
    let message = format!("`pattern` has {have} `*` and `source_key` has {need}");
    let count = |n: usize| format!("{n} `*`");
    let mismatch =
        source_key.label_at_definition(Diagnostic::new(Code::WildcardMismatch, message), count(need));
    let mismatch = pattern.label_at_definition(mismatch, count(have));
    report.push(mismatch.help("each `*` of `pattern` fills one `*` of `source_key`, from left to right"));
    false
}

/// A text, or a mistake.
pub(super) fn text<'n>(field: Field, node: &'n Node, report: &mut Report<'_>) -> Option<&'n str> {
    let message = format!("`{}` is {}, not text", field.name(), node.value.kind());
    match &node.value {
        Value::Text(text) if text.is_empty() && !is_pattern(field) => {
            report.bad_value(node, format!("`{}` is empty", field.name()), "", expected(field));
        }
        Value::Text(text) if !is_pattern(field) && text.chars().any(char::is_control) => {
            let message = format!("`{}` has a line break or another control character", field.name());
            report.bad_value(node, message, "", "write it in one line, in quotes".to_owned());
        }
        Value::Text(text) => return Some(text),
        Value::List(_) | Value::Map(_)
            if matches!(field, Field::Pattern | Field::Exclude | Field::SourceKey) =>
        {
            let help = match flow_text(node, report.text) {
                _ if several(node) && field == Field::Pattern => {
                    "a pattern is one text: join the keys with braces, such as \"{lm_head,model.norm}.weight\", or write \
                     one operation for each"
                        .to_owned()
                }
                Some(written) => {
                    format!(
                        "quote the pattern, or YAML reads its signs as its own: {}",
                        quoted(&words::excerpt(written))
                    )
                }
                None => format!("quote the pattern; {}", expected(field)),
            };
            report.bad_value(&node.visible().with(Value::Null), message, "", help);
        }
        Value::List(_) | Value::Map(_) | Value::Null => {
            report.bad_value(&node.visible().with(Value::Null), message, "", expected(field));
        }
        Value::Binary => {
            report.bad_value(node, message, "", "drop `!!binary` and write the text itself".to_owned());
        }
        _ => {
            let written = report.text.get(node.span.clone()).unwrap_or_default();
            report.bad_value(
                node,
                message,
                "",
                format!("put quotes around it: {}", quoted(&words::excerpt(written))),
            );
        }
    }
    None
}

/// Whether a node is a list of what could be keys, not a set of characters that lacks its quotes.
fn several(node: &Node) -> bool {
    matches!(&node.value, Value::List(items)
        if items.iter().any(|item| matches!(&item.value, Value::Text(text) if text.contains('.'))))
}

/// Whether the dialect of patterns judges a field's text.
fn is_pattern(field: Field) -> bool {
    matches!(field, Field::Pattern | Field::Exclude)
}

/// The source of a list or mapping in brackets, up to the bracket that closes it.
fn flow_text<'t>(node: &Node, text: &'t str) -> Option<&'t str> {
    let rest = text.get(node.span.start..)?.lines().next()?;
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

pub(super) fn name(node: &Node, report: &mut Report<'_>) -> Option<String> {
    text(Field::Name, node, report).map(str::to_owned)
}

pub(super) fn pattern(field: Field, node: &Node, report: &mut Report<'_>) -> Option<Spanned<Pattern>> {
    let text = text(field, node, report)?;
    match Pattern::parse(text) {
        Ok(pattern) => Some(node.with(pattern)),
        Err(error) => {
            bad_glob(&node.with(()), text, error, report);
            None
        }
    }
}

impl Spanned<Pattern> {
    /// The place of a part of the pattern, if the pattern stands in the file letter by letter; else all of it.
    #[must_use]
    pub fn part(&self, part: &Span, file: &str) -> Spanned<()> {
        let inside =
            inner(&self.span, self.value.as_str(), file).map(|start| start + part.start..start + part.end);
        Spanned { value: (), span: inside.unwrap_or_else(|| self.span.clone()), alias: self.alias.clone() }
    }
}

/// Labels the mistake inside the pattern, if the pattern stands in the file letter by letter; else all of it.
fn bad_glob(place: &Spanned<()>, text: &str, error: PatternError, report: &mut Report<'_>) {
    let inside = inner(&place.span, text, report.text)
        .map(|start| start + error.span.start..start + error.span.end)
        .filter(|span| !span.is_empty());
    let place = Spanned { span: inside.unwrap_or_else(|| place.span.clone()), ..place.clone() };
    let refusal = place.label_at_definition(Diagnostic::new(Code::BadGlob, error.message), "");
    report.push(match error.help {
        Some(help) => refusal.help(help),
        None => refusal,
    });
}

/// Where a scalar's text begins in the file, if no quoting or folding stands between.
fn inner(span: &Span, text: &str, file: &str) -> Option<usize> {
    let written = file.get(span.clone())?;
    let quotes = usize::from(written.starts_with(['"', '\'']));
    (written.get(quotes..written.len() - quotes)? == text).then_some(span.start + quotes)
}

pub(super) fn patterns(node: &Node, report: &mut Report<'_>) -> Option<Vec<Spanned<Pattern>>> {
    /// Every key is held against each of them; braces say more in one.
    const MOST: usize = 1000;
    match &node.value {
        Value::List(items) if items.len() > MOST => {
            let message = format!("`exclude` lists {} patterns, more than {MOST}", items.len());
            let help = "join them with braces, such as `{a,b,c}`, or with wildcards";
            report.bad_value(node, message, "", help.to_owned());
            None
        }
        Value::List(items) => {
            let read: Vec<_> = items.iter().map(|item| pattern(Field::Exclude, item, report)).collect();
            read.into_iter().collect()
        }
        _ => pattern(Field::Exclude, node, report).map(|pattern| vec![pattern]),
    }
}

pub(super) fn path(
    field: Field,
    node: &Node,
    dir: &Path,
    report: &mut Report<'_>,
) -> Option<Spanned<PathBuf>> {
    let path = text(field, node, report)?;
    Some(node.with(dir.join(path)))
}

pub(super) fn template(node: &Node, report: &mut Report<'_>) -> Option<Spanned<Template>> {
    Some(node.with(Template::new(text(Field::SourceKey, node, report)?)))
}
