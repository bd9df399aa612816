//! Which operation a misspelled or foreign name means.

use super::super::language::{Field, OpName};
use super::field::near_field;
use super::synonyms;
use crate::diagnostic::words::list_and;
use crate::diagnostic::{did_you_mean, nearest};

/// What an unknown operation name means.
pub(in crate::surgery) struct OpMeant {
    /// The operation, if one is likely.
    pub(in crate::surgery) op: Option<OpName>,
    pub(in crate::surgery) help: String,
}

/// What an unknown operation name means.
pub(in crate::surgery) fn op_meant(name: &str) -> OpMeant {
    let all = format!("the operations are {}", list_and(OpName::names()));
    if let Some(near) = nearest(name, OpName::names()) {
        return OpMeant { op: OpName::named(near), help: did_you_mean(Some(near), &all) };
    }
    match synonyms::operation(name) {
        Some((op, how)) => OpMeant { op: Some(op), help: format!("{how}; {all}") },
        None if name.contains(" //") => OpMeant { op: None, help: format!("start comments with `#`; {all}") },
        None => OpMeant { op: None, help: all },
    }
}

/// Whether an unknown field is a misspelled or foreign `op`.
pub(in crate::surgery) fn is_op_misspelled(name: &str) -> bool {
    near_field(name, None) == Some(Field::Op) || synonyms::field(name, &[Field::Op]).is_some()
}
