//! What a field's value must be, for helps.

use super::super::language::{Field, Granularity, Method, OpName, ValueKind};
use crate::diagnostic::words::list_or;

/// "must be …", for the value of a field.
pub(super) fn expected(field: Field) -> String {
    let must_be = match field.spec().value {
        ValueKind::OpName => list_or(OpName::names()),
        ValueKind::Line => "a line of text".to_owned(),
        ValueKind::Pattern | ValueKind::Patterns => {
            "a pattern over tensor keys, such as \"model.layers.*.mlp.down_proj.weight\"".to_owned()
        }
        ValueKind::Number => "a number, such as `0.5`".to_owned(),
        ValueKind::Ratio => "a number from 0 (all of `source_a`) to 1 (all of `source_b`)".to_owned(),
        ValueKind::Granularity => list_or(Granularity::ALL.map(Granularity::name)),
        ValueKind::Method => list_or(Method::ALL.map(Method::name)),
        ValueKind::Ids => format!("a list of whole numbers, such as `{}: [3, 7]`", field.name()),
        ValueKind::Donor => "the path of a safetensors file, a model directory or an index file".to_owned(),
        ValueKind::DonorKey => "the donor's key, with as many `*` as the pattern".to_owned(),
    };
    format!("must be {must_be}")
}
