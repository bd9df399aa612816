//! Values that are text: names, donor paths, donor keys, and the words of a fixed set.

use std::path::{Path, PathBuf};

use super::super::language::{Field, ValueKind};
use super::super::pattern::Template;
use super::super::spanned::Spanned;
use super::super::suggest::{choice_meant, flow_text, quote_pattern, quoted};
use super::super::tree::{Node, Value};
use super::collector::Collector;
use super::expected::expected;
use crate::diagnostic::words::excerpt;
use crate::diagnostic::{did_you_mean, nearest};

/// The text of a node.
pub(super) fn text<'n>(field: Field, node: &'n Node, collector: &mut Collector<'_>) -> Option<&'n str> {
    let name = field.name();
    let kind = field.spec().value;
    // Patterns have refusals of their own for these.
    let is_pattern = matches!(kind, ValueKind::Pattern | ValueKind::Patterns);
    let message = format!("`{name}` is {}, not text", node.value.kind());
    match &node.value {
        Value::Text(text) if text.is_empty() && !is_pattern => {
            collector.bad_value(node, format!("`{name}` is empty"), "", expected(field));
        }
        Value::Text(text) if !is_pattern && text.chars().any(char::is_control) => {
            let message = format!("`{name}` has a line break or another control character");
            collector.bad_value(node, message, "", "write it in one line, in quotes".to_owned());
        }
        Value::Text(text) => return Some(text),
        Value::List(_) | Value::Map(_) if is_pattern || kind == ValueKind::DonorKey => {
            let help = match flow_text(collector.text, node.span.start) {
                _ if lists_keys(node) && kind == ValueKind::Pattern => {
                    "join the keys with braces, such as \"{lm_head,model.norm}.weight\", or write one operation for \
                     each"
                        .to_owned()
                }
                Some(written) => quote_pattern(written),
                None => format!("quote the pattern; it {}", expected(field)),
            };
            collector.bad_value(&node.visible().with(Value::Null), message, "", help);
        }
        Value::List(_) | Value::Map(_) | Value::Null => {
            collector.bad_value(&node.visible().with(Value::Null), message, "", expected(field));
        }
        Value::Binary => {
            collector.bad_value(node, message, "", "remove `!!binary` and write the text itself".to_owned());
        }
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            let written = collector.text.get(node.span.clone()).unwrap_or_default();
            collector.bad_value(node, message, "", format!("quote it: {}", quoted(&excerpt(written))));
        }
    }
    None
}

/// Whether a node is a list of keys, not a character class without quotes.
fn lists_keys(node: &Node) -> bool {
    matches!(&node.value, Value::List(items)
        if items.iter().any(|item| matches!(&item.value, Value::Text(text) if text.contains('.'))))
}

/// A donor's path, resolved against the file's directory.
pub(super) fn donor(
    field: Field,
    node: &Node,
    dir: &Path,
    collector: &mut Collector<'_>,
) -> Option<Spanned<PathBuf>> {
    let path = text(field, node, collector)?;
    Some(node.with(dir.join(path)))
}

/// A donor's key, with `*` for captures.
pub(super) fn donor_key(
    field: Field,
    node: &Node,
    collector: &mut Collector<'_>,
) -> Option<Spanned<Template>> {
    Some(node.with(Template::new(text(field, node, collector)?)))
}

/// One of the words that a field's value may be.
pub(super) fn choice<T: Copy>(
    field: Field,
    (choices, name): (&[T], fn(T) -> &'static str),
    node: &Node,
    collector: &mut Collector<'_>,
) -> Option<Spanned<T>> {
    let written = text(field, node, collector)?;
    if let Some(choice) = choices.iter().find(|choice| name(**choice) == written) {
        return Some(node.with(*choice));
    }
    let names = || choices.iter().map(|choice| name(*choice));
    let near = nearest(written, names()).or_else(|| choice_meant(written, names()));
    let help = did_you_mean(near, &expected(field));
    collector.bad_value(node, format!("unknown {} `{}`", field.name(), excerpt(written)), "", help);
    None
}
