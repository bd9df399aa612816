//! Numbers and lists of ids.

use super::super::language::Field;
use super::super::spanned::Spanned;
use super::super::suggest::{ids_in_text, number_in_text};
use super::super::tree::{Node, Value};
use super::collector::Collector;
use super::expected::expected;
use crate::diagnostic::words::excerpt;
use crate::diagnostic::{Code, Diagnostic};

/// A finite number.
pub(super) fn number(field: Field, node: &Node, collector: &mut Collector<'_>) -> Option<Spanned<f64>> {
    let value = match &node.value {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a whole number beyond 2^53 is rounded, as in any decimal"
        )]
        Value::Int(value) => *value as f64,
        Value::Float(value) => *value,
        other => {
            let message = format!("`{}` is {}, not a number", field.name(), other.kind());
            let help = match other {
                Value::Text(text) => number_in_text(text).map_or_else(
                    || expected(field),
                    |number| {
                        format!(
                            "write a plain number, without quotes or other characters: `{}: {number}`",
                            field.name()
                        )
                    },
                ),
                Value::List(items) if items.len() == 1 => "write the number without brackets".to_owned(),
                Value::List(_) => {
                    "write one number for all matched tensors; for a gradient over layers, write one operation for each \
                     range of them, such as `{0..11}` and `{12..23}`"
                        .to_owned()
                }
                _ => expected(field),
            };
            collector.bad_value(&node.visible().with(Value::Null), message, "", help);
            return None;
        }
    };
    if !value.is_finite() {
        let message = format!("`{}` is not a finite number", field.name());
        let refusal = node.label_at_definition(Diagnostic::new(Code::NotFinite, message), "");
        collector.push(refusal.help("use a number that is neither infinite nor NaN"));
        return None;
    }
    Some(node.with(value))
}

/// A number from 0 to 1.
pub(super) fn ratio(field: Field, node: &Node, collector: &mut Collector<'_>) -> Option<Spanned<f64>> {
    let ratio = number(field, node, collector)?;
    if !(0.0..=1.0).contains(&ratio.value) {
        let written = collector.text.get(node.span.clone()).unwrap_or_default();
        let message = format!("`{}` must be between 0 and 1, got {}", field.name(), excerpt(written));
        let refusal = node.label_at_definition(Diagnostic::new(Code::RatioOutOfRange, message), "");
        collector.push(refusal.help("0.3 takes 70 % of `source_a` and 30 % of `source_b`"));
        return None;
    }
    Some(ratio)
}

/// The valid ids, if there are any, and whether all are valid.
pub(super) fn ids(
    field: Field,
    node: &Node,
    collector: &mut Collector<'_>,
) -> (Option<Spanned<Vec<Spanned<u64>>>>, bool) {
    let Value::List(items) = &node.value else {
        let message = format!("`{}` is {}, not a list", field.name(), node.value.kind());
        let written = collector.text.get(node.span.clone()).unwrap_or_default();
        let help = match &node.value {
            Value::Int(_) => format!("write `{}: [{}]`", field.name(), excerpt(written)),
            Value::Text(text) => ids_in_text(text)
                .map_or_else(|| expected(field), |ids| format!("list them: `{}: [{ids}]`", field.name())),
            _ => expected(field),
        };
        collector.bad_value(&node.visible().with(Value::Null), message, "", help);
        return (None, false);
    };
    if items.is_empty() {
        let empty = Diagnostic::new(Code::EmptyIds, format!("`{}` is empty", field.name()));
        collector
            .push(node.label_at_definition(empty, "").help("list what to zero, or remove the operation"));
        return (None, false);
    }
    let read: Vec<_> = items.iter().filter_map(|item| id(field, item, collector)).collect();
    let good = read.len() == items.len();
    ((!read.is_empty()).then(|| node.visible().with(read)), good)
}

fn id(field: Field, node: &Node, collector: &mut Collector<'_>) -> Option<Spanned<u64>> {
    if let Value::Int(value) = node.value
        && let Ok(id) = u64::try_from(value)
    {
        return Some(node.with(id));
    }
    let written = collector.text.get(node.span.clone()).unwrap_or_default();
    let digits = written.bytes().all(|byte| byte.is_ascii_digit());
    let mut help = "write whole numbers, counted from 0".to_owned();
    let what = match &node.value {
        Value::Int(value) if *value < 0 => "a negative number".to_owned(),
        Value::Float(value) if *value < 0.0 => "a negative number".to_owned(),
        // The parser reads `010` as a float, because it is 8 in YAML 1.1.
        Value::Float(_) if digits && written.len() > 1 && written.starts_with('0') => {
            let plain = written.trim_start_matches('0');
            help = format!("write `{}`", if plain.is_empty() { "0" } else { plain });
            "a number with leading zeros".to_owned()
        }
        Value::Int(_) => "a number that is too large".to_owned(),
        Value::Float(_) if digits => "a number that is too large".to_owned(),
        Value::Text(text) if ids_in_text(text).is_some_and(|ids| ids != *text) => {
            help = format!("list them: `{}`", ids_in_text(text).unwrap_or_default());
            "text, not a whole number".to_owned()
        }
        Value::Float(_) => "a number that is not whole".to_owned(),
        other => format!("{}, not a whole number", other.kind()),
    };
    let message = format!("`{}` has {what}", field.name());
    collector.bad_value(&node.visible().with(Value::Null), message, "", help);
    None
}
