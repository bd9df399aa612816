//! The name of an operation, in a field that may be misspelled itself.

use super::super::language::{Field, OpName};
use super::super::spanned::Spanned;
use super::super::suggest::{is_op_misspelled, op_meant};
use super::super::tree::{Node, Value};
use super::collector::Collector;
use super::expected::expected;
use super::mapping_keys::{is_named, key_name, no_value};
use crate::diagnostic::words::{excerpt, list_and};
use crate::diagnostic::{Code, Diagnostic};

/// The operation that an entry names, and otherwise the one that it probably means.
pub(super) fn op_name(
    entry: &Node,
    pairs: &[(Node, Node)],
    collector: &mut Collector<'_>,
) -> (Option<Spanned<OpName>>, Option<OpName>) {
    let misspelled =
        |key: &Node| key_name(key).is_some_and(|name| Field::named(name).is_none() && is_op_misspelled(name));
    let exact = pairs.iter().find(|(key, _)| is_named(key, Field::Op.name()));
    let Some((key, value)) = exact.or_else(|| pairs.iter().find(|(key, _)| misspelled(key))) else {
        let missing = Diagnostic::new(Code::MissingField, "an operation has no `op`");
        let place = pairs.first().map_or_else(|| entry.visible(), |(key, _)| key.visible());
        let missing = place.label_at_definition(missing, "no `op` in this mapping");
        collector.push(missing.help(format!("add `op:`, which {}", expected(Field::Op))));
        return (None, None);
    };
    match &value.value {
        Value::Text(name) => {
            if let Some(op) = OpName::named(name) {
                return (Some(value.with(op)), None);
            }
            let meant = op_meant(name);
            let message = format!("unknown operation `{}`", excerpt(name));
            let unknown = Diagnostic::new(Code::UnknownOperation, message);
            collector.push(value.label_at_definition(unknown, "").help(meant.help));
            (None, meant.op)
        }
        Value::Null => {
            collector.push(no_value(key, value, Field::Op.name()).help(expected(Field::Op)));
            (None, None)
        }
        other => {
            let message = format!("`op` is {}, not the name of an operation", other.kind());
            let help = format!("the operations are {}", list_and(OpName::names()));
            collector.bad_value(&value.visible().with(Value::Null), message, "", help);
            (None, None)
        }
    }
}
