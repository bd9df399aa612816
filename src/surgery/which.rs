//! Which operation an entry of `operations` names, or means.

use super::fields::{Field, Op};
use super::keys::{is_named, key_name, no_value};
use super::node::{Node, Value};
use super::report::Report;
use super::{Spanned, suggest};
use crate::diagnostic::{Code, Diagnostic, did_you_mean, nearest, words};

/// The operation an entry names, in a field that may be misspelt itself; or else the one that it probably means.
pub(super) fn which_op(
    entry: &Node,
    pairs: &[(Node, Node)],
    report: &mut Report<'_>,
) -> (Option<Spanned<Op>>, Option<Op>) {
    let misspelt = |key: &Node| {
        key_name(key).filter(|name| Field::named(name).is_none()).is_some_and(|name| {
            near_field(name, None) == Some("op") || suggest::field(name, &["op"]).is_some()
        })
    };
    let exact = pairs.iter().find(|(key, _)| is_named(key, "op"));
    let Some((key, value)) = exact.or_else(|| pairs.iter().find(|(key, _)| misspelt(key))) else {
        let missing = Diagnostic::new(Code::MissingField, "an operation has no `op`");
        let place = pairs.first().map_or_else(|| entry.visible(), |(key, _)| key.visible());
        let missing = place.label_at_definition(missing, "no `op` in this mapping");
        report.push(missing.help(format!("add `op:` with one of {}", op_names())));
        return (None, None);
    };
    let mut meant = None;
    let op = match &value.value {
        Value::Text(name) => {
            let op = Op::named(name);
            if op.is_none() {
                let all = format!("the operations are {}", op_names());
                let near = nearest(name, Op::ALL.map(Op::name));
                let help = match suggest::operation(name).filter(|_| near.is_none()) {
                    Some((op, here)) => {
                        meant = Some(op);
                        format!("{here}; {all}")
                    }
                    None if name.contains(" //") => format!("a comment begins with `#`; {all}"),
                    None => did_you_mean(near, &all),
                };
                meant = meant.or_else(|| near.and_then(Op::named));
                let unknown = Diagnostic::new(
                    Code::UnknownOperation,
                    format!("unknown operation `{}`", words::excerpt(name)),
                );
                report.push(value.label_at_definition(unknown, "").help(help));
            }
            op
        }
        Value::Null => {
            report.push(
                no_value(key, value, "op").help(format!("must be {}", words::list_or(Op::ALL.map(Op::name)))),
            );
            None
        }
        other => {
            let message = format!("`op` is {}, not the name of an operation", other.kind());
            let help = format!("the operations are {}", op_names());
            report.bad_value(&value.visible().with(Value::Null), message, "", help);
            None
        }
    };
    (op.map(|op| value.with(op)), meant)
}

fn op_names() -> String {
    words::list_and(Op::ALL.map(Op::name))
}

/// The nearest field of any operation but this one.
pub(super) fn near_field(name: &str, but: Option<Op>) -> Option<&'static str> {
    let of_this = |field: &Field| but.is_some_and(|op| op.own(None).contains(field));
    nearest(name, Field::ALL.into_iter().filter(|field| !of_this(field)).map(Field::name))
}
