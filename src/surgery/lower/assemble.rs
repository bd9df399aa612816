//! From an operation's name and values to its [`Kind`].

use super::super::language::{Field, Method, OpName};
use super::super::operation::Kind;
use super::super::spanned::Spanned;
use super::values::Values;

/// The operation's edit, if every value that it needs is there. A neutral value, from which no mistake follows, replaces
/// an unreadable number or method.
pub(super) fn kind(op: &Spanned<OpName>, values: &mut Values<'_>) -> Option<Kind> {
    Some(match op.value {
        OpName::Scale => Kind::Scale { factor: number(values, Field::Factor, op, 0.5) },
        OpName::Add => Kind::Add {
            source: values.donors.remove(&Field::Source)?,
            alpha: number(values, Field::Alpha, op, 1.0),
        },
        OpName::Prune => {
            let granularity = values.granularity.take()?;
            let ids = values.ids.remove(&op.value.ids_field(granularity.value)?)?;
            Kind::Prune { granularity, ids }
        }
        OpName::Replace => Kind::Replace {
            source: values.donors.remove(&Field::Source)?,
            source_key: values.donor_key.take()?,
        },
        OpName::Interpolate => Kind::Interpolate {
            source_a: values.donors.remove(&Field::SourceA)?,
            source_b: values.donors.remove(&Field::SourceB)?,
            ratio: number(values, Field::Ratio, op, 0.5),
            method: values.method.take().unwrap_or_else(|| op.with(Method::Lerp)),
        },
    })
}

/// A number, or else a default at the place of `op`.
fn number(values: &mut Values<'_>, field: Field, op: &Spanned<OpName>, default: f64) -> Spanned<f64> {
    values.numbers.remove(&field).unwrap_or_else(|| op.with(default))
}
