//! Which field a misspelled, foreign or misplaced one means.

use std::collections::BTreeSet;

use super::super::language::{Field, Granularity, OpName};
use super::synonyms;
use crate::diagnostic::words::list_and;
use crate::diagnostic::{did_you_mean, nearest};

/// The operation around a field.
pub(in crate::surgery) struct Siblings<'s> {
    /// The operation, or the one that an unknown name probably means.
    pub(in crate::surgery) op: Option<OpName>,
    pub(in crate::surgery) granularity: Option<Granularity>,
    /// The known fields that are there.
    pub(in crate::surgery) given: &'s BTreeSet<Field>,
}

/// What an unknown field means.
pub(in crate::surgery) struct Meant {
    /// The field that its value can be read as.
    pub(in crate::surgery) reads_as: Option<Field>,
    /// The fields that are not missing any more.
    pub(in crate::surgery) stands_for: Vec<Field>,
    pub(in crate::surgery) help: String,
}

impl Siblings<'_> {
    /// What an unknown field means; `is_collection` says whether its value is a list or a mapping.
    pub(in crate::surgery) fn meant_by(&self, name: Option<&str>, is_collection: bool) -> Meant {
        let own: Vec<Field> = match self.op {
            Some(op) => fields_of(op, self.granularity).collect(),
            None => Field::all().collect(),
        };
        let absent: Vec<Field> = own.iter().copied().filter(|own| !self.given.contains(own)).collect();
        let fits = name.and_then(|name| {
            // Synonyms differ between operations.
            let synonym = || self.op.and_then(|_| synonyms::field(name, &absent));
            nearest_field(name, absent.iter().copied()).or_else(synonym)
        });
        if is_collection && fits == Some(Field::SourceA) && absent.contains(&Field::SourceB) {
            return Meant {
                reads_as: None,
                stands_for: vec![Field::SourceA, Field::SourceB],
                help: "write two fields, `source_a` and `source_b`, with one path each".to_owned(),
            };
        }
        let near = fits.or_else(|| {
            let name = name?;
            nearest_field(name, own.iter().copied()).or_else(|| near_field(name, self.op))
        });
        let near_name = near.map(Field::name);
        let help = match (name, self.op) {
            (Some(name), _) if name.starts_with("x-") => {
                "move it to the top level: keys that begin with `x-` are ignored only there".to_owned()
            }
            (_, Some(op)) => did_you_mean(near_name, &takes(op, self.granularity)),
            (_, None) => did_you_mean(near_name, "no operation has such a field"),
        };
        Meant { reads_as: fits, stands_for: near.into_iter().collect(), help }
    }
}

/// The help for a field of another operation or granularity (`owner` is the actual one), given the fields to write instead.
pub(in crate::surgery) fn misplaced_help(
    owner: &str,
    instead: &[Field],
    of_granularity: bool,
    op: OpName,
    granularity: Option<Granularity>,
) -> String {
    if !instead.is_empty() {
        return format!("{owner} takes {}", list_and(instead.iter().map(|field| field.name())));
    }
    let other = if of_granularity { "another granularity" } else { "another operation" };
    format!("remove it, or choose {other}; {}", takes(op, granularity))
}

/// The field nearest to a word among those of any operation but one.
pub(in crate::surgery) fn near_field(word: &str, except: Option<OpName>) -> Option<Field> {
    let of_that = |field: Field| except.is_some_and(|op| op.own_fields(None).any(|own| own == field));
    nearest_field(word, Field::all().filter(|field| !of_that(*field)))
}

/// The fields that an operation takes, in the order for humans; the ids of all granularities until one is known.
pub(in crate::surgery) fn fields_of(
    op: OpName,
    granularity: Option<Granularity>,
) -> impl Iterator<Item = Field> {
    let ids = op.ids_fields().filter(move |_| granularity.is_none());
    let own = op.own_fields(granularity).chain(ids);
    [Field::Op, Field::Pattern].into_iter().chain(own).chain([Field::Exclude, Field::Name])
}

fn takes(op: OpName, granularity: Option<Granularity>) -> String {
    format!("`{op}` takes {}", list_and(fields_of(op, granularity).skip(1).map(Field::name)))
}

fn nearest_field(word: &str, candidates: impl Iterator<Item = Field>) -> Option<Field> {
    Field::named(nearest(word, candidates.map(Field::name))?)
}
