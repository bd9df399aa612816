//! Values that are patterns, and mistakes inside them.

use super::super::language::Field;
use super::super::pattern::{Pattern, PatternError, Template, offset_in_file};
use super::super::spanned::Spanned;
use super::super::tree::{Node, Value};
use super::collector::Collector;
use super::strings::text;
use crate::diagnostic::words::count;
use crate::diagnostic::{Code, Diagnostic};

/// Patterns of the longest `exclude`: each key is matched with every one of them.
const MAX_EXCLUSIONS: usize = 1000;

/// A pattern.
pub(super) fn pattern(field: Field, node: &Node, collector: &mut Collector<'_>) -> Option<Spanned<Pattern>> {
    let text = text(field, node, collector)?;
    match Pattern::parse(text) {
        Ok(pattern) => Some(node.with(pattern)),
        Err(error) => {
            bad_glob(&node.with(()), text, error, collector);
            None
        }
    }
}

/// A pattern or a list of patterns.
pub(super) fn patterns(
    field: Field,
    node: &Node,
    collector: &mut Collector<'_>,
) -> Option<Vec<Spanned<Pattern>>> {
    match &node.value {
        Value::List(items) if items.len() > MAX_EXCLUSIONS => {
            let message = format!(
                "`{}` lists {}, more than {MAX_EXCLUSIONS}",
                field.name(),
                count(items.len(), "pattern")
            );
            let help = "join them with braces, such as `{a,b,c}`, or use wildcards";
            collector.bad_value(node, message, "", help.to_owned());
            None
        }
        Value::List(items) => {
            let read: Vec<_> = items.iter().map(|item| pattern(field, item, collector)).collect();
            read.into_iter().collect()
        }
        _ => pattern(field, node, collector).map(|pattern| vec![pattern]),
    }
}

/// Whether a pattern has a capture for each `*` of a donor's key; reports it if not.
pub(super) fn check_captures(
    pattern: &Spanned<Pattern>,
    source_key: &Spanned<Template>,
    collector: &mut Collector<'_>,
) -> bool {
    if let Some(star) = pattern.value.braced_star() {
        let error = PatternError {
            span: star,
            message: "`*` within braces captures nothing for `source_key`".to_owned(),
            help: Some("write one operation for each alternative".to_owned()),
        };
        bad_glob(&pattern.with(()), pattern.value.as_str(), error, collector);
        return false;
    }
    let (have, need) = (pattern.value.wildcards(), source_key.value.wildcards());
    if have == need {
        return true;
    }
    let message = format!("`pattern` has {have} `*` and `source_key` has {need}");
    let stars = |n: usize| format!("{n} `*`");
    let mismatch =
        source_key.label_at_definition(Diagnostic::new(Code::WildcardMismatch, message), stars(need));
    let mismatch = pattern.label_at_definition(mismatch, stars(have));
    collector.push(mismatch.help(
        "write as many `*` in `source_key` as in `pattern`; each takes what the pattern's matched, from left to right",
    ));
    false
}

/// Reports a mistake in a pattern at its place inside the pattern, where the file has the pattern verbatim.
fn bad_glob(place: &Spanned<()>, text: &str, error: PatternError, collector: &mut Collector<'_>) {
    let inside = offset_in_file(&place.span, text, collector.text)
        .map(|start| start + error.span.start..start + error.span.end)
        .filter(|span| !span.is_empty());
    let place = Spanned { span: inside.unwrap_or_else(|| place.span.clone()), ..place.clone() };
    let refusal = place.label_at_definition(Diagnostic::new(Code::BadGlob, error.message), "");
    collector.push(match error.help {
        Some(help) => refusal.help(help),
        None => refusal,
    });
}
