//! Values that are numbers: parameters and ids.

use super::Spanned;
use super::fields::Field;
use super::node::{Node, Value};
use super::report::Report;
use super::values::expected;
use crate::diagnostic::{Code, Diagnostic, words};

/// A number, or a mistake.
pub(super) fn number(field: Field, node: &Node, report: &mut Report<'_>) -> Option<Spanned<f64>> {
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
                Value::Text(text) => meant_number(text).map_or_else(
                    || expected(field),
                    |number| {
                        format!(
                            "write a plain number, without quotes or other signs: `{}: {number}`",
                            field.name()
                        )
                    },
                ),
                Value::List(items) if items.len() == 1 => "write the number without brackets".to_owned(),
                Value::List(_) => {
                    "one number holds for all that the pattern matches: for a gradient over layers write \
                                   one operation for each range of them, such as `{0..11}` and `{12..23}`"
                        .to_owned()
                }
                _ => expected(field),
            };
            report.bad_value(&node.visible().with(Value::Null), message, "", help);
            return None;
        }
    };
    if !value.is_finite() {
        let message = format!("`{}` is not a finite number", field.name());
        let refusal = node.label_at_definition(Diagnostic::new(Code::NotFinite, message), "");
        report.push(refusal.help("use a number that is neither infinite nor NaN"));
        return None;
    }
    Some(node.with(value))
}

pub(super) fn ratio(node: &Node, report: &mut Report<'_>) -> Option<Spanned<f64>> {
    let ratio = number(Field::Ratio, node, report)?;
    if !(0.0..=1.0).contains(&ratio.value) {
        let written = report.text.get(node.span.clone()).unwrap_or_default();
        let message = format!("`ratio` is {}, not between 0 and 1", words::excerpt(written));
        let refusal = node.label_at_definition(Diagnostic::new(Code::RatioOutOfRange, message), "");
        report.push(refusal.help("0.3 takes 70 % of `source_a` and 30 % of `source_b`"));
        return None;
    }
    Some(ratio)
}

/// The ids that are numbers, if there are any, and whether all are.
pub(super) fn ids(
    field: Field,
    node: &Node,
    report: &mut Report<'_>,
) -> (Option<Spanned<Vec<Spanned<u64>>>>, bool) {
    let Value::List(items) = &node.value else {
        let message = format!("`{}` is {}, not a list", field.name(), node.value.kind());
        let written = report.text.get(node.span.clone()).unwrap_or_default();
        let help = match &node.value {
            Value::Int(_) => format!("write `{}: [{}]`", field.name(), words::excerpt(written)),
            Value::Text(text) => meant_ids(text).map_or_else(
                || expected(field),
                |ids| format!("write each of them out: `{}: [{ids}]`", field.name()),
            ),
            _ => expected(field),
        };
        report.bad_value(&node.visible().with(Value::Null), message, "", help);
        return (None, false);
    };
    if items.is_empty() {
        let empty = Diagnostic::new(Code::EmptyIds, format!("`{}` is empty", field.name()));
        report.push(
            node.label_at_definition(empty, "").help("list what is to be zeroed, or drop the operation"),
        );
        return (None, false);
    }
    let read: Vec<_> = items.iter().filter_map(|item| id(field, item, report)).collect();
    let good = read.len() == items.len();
    ((!read.is_empty()).then(|| node.visible().with(read)), good)
}

fn id(field: Field, node: &Node, report: &mut Report<'_>) -> Option<Spanned<u64>> {
    if let Value::Int(value) = node.value
        && let Ok(id) = u64::try_from(value)
    {
        return Some(node.with(id));
    }
    let written = report.text.get(node.span.clone()).unwrap_or_default();
    let digits = written.bytes().all(|byte| byte.is_ascii_digit());
    let mut help = "ids are whole numbers, counted from 0".to_owned();
    let what = match &node.value {
        Value::Int(value) if *value < 0 => "a negative number".to_owned(),
        Value::Float(value) if *value < 0.0 => "a negative number".to_owned(),
        // The parser has `010` for a float, since YAML 1.1 read it as 8.
        Value::Float(_) if digits && written.len() > 1 && written.starts_with('0') => {
            let plain = written.trim_start_matches('0');
            help = format!("write `{}`", if plain.is_empty() { "0" } else { plain });
            "a number with leading zeros".to_owned()
        }
        Value::Int(_) => "a number that is too large".to_owned(),
        Value::Float(_) if digits => "a number that is too large".to_owned(),
        Value::Text(text) if meant_ids(text).is_some_and(|ids| ids != *text) => {
            help = format!("write each of them out: `{}`", meant_ids(text).unwrap_or_default());
            "text, not a whole number".to_owned()
        }
        Value::Float(_) => "a number that is not whole".to_owned(),
        other => format!("{}, not a whole number", other.kind()),
    };
    let message = format!("`{}` has {what}", field.name());
    report.bad_value(&node.visible().with(Value::Null), message, "", help);
    None
}

/// The number that a text means: `50%`, `1/2`, `0,5`, `1_000`, `2,`.
fn meant_number(text: &str) -> Option<String> {
    let plain = text.trim().trim_end_matches([',', ';']).replace('_', "");
    let parse = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let number = if let Some(percent) = plain.strip_suffix('%') {
        parse(percent)? / 100.0
    } else if let Some((above, below)) = plain.split_once('/') {
        parse(above)? / parse(below)?
    } else {
        parse(&plain).or_else(|| parse(&plain.replacen(',', ".", 1)))?
    };
    number.is_finite().then(|| number.to_string())
}

/// The ids that a text means: `1 2`, `0,1`, `0-3`, `0..3, 7`.
fn meant_ids(text: &str) -> Option<String> {
    /// Longer ranges are not written out for anybody.
    const MOST: u64 = 32;
    let mut ids: Vec<String> = Vec::new();
    for part in text.split([',', ' ', ';']).filter(|part| !part.is_empty()) {
        let range = ["..", "-", "–", ":"].iter().find_map(|sign| part.split_once(sign));
        let (low, high) = range.unwrap_or((part, part));
        let (low, high): (u64, u64) = (low.parse().ok()?, high.parse().ok()?);
        if high < low || high - low > MOST || ids.len() as u64 > MOST {
            return None;
        }
        ids.extend((low..=high).map(|id| id.to_string()));
    }
    (!ids.is_empty()).then(|| ids.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_other_notations_are_understood() {
        for (text, number) in [
            ("50%", "0.5"),
            ("1/2", "0.5"),
            ("0,5", "0.5"),
            ("1_000", "1000"),
            (" 2, ", "2"),
            ("-3 %", "-0.03"),
        ] {
            assert_eq!(meant_number(text).as_deref(), Some(number), "{text}");
        }
        for text in ["two", "1/0", "1,2,3", "", "%", "inf", "0.5.1"] {
            assert_eq!(meant_number(text), None, "{text}");
        }
    }

    #[test]
    fn ids_in_other_notations_are_understood() {
        for (text, ids) in
            [("1 2", "1, 2"), ("0,1", "0, 1"), ("0-3", "0, 1, 2, 3"), ("0..2, 7", "0, 1, 2, 7")]
        {
            assert_eq!(meant_ids(text).as_deref(), Some(ids), "{text}");
        }
        for text in ["all", "3-1", "0-1000", "", "1.5", "-1"] {
            assert_eq!(meant_ids(text), None, "{text}");
        }
    }
}
