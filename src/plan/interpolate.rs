//! `interpolate`: blend(a, b) of two donors, whatever the base holds.

use std::path::PathBuf;

use super::draft::{Context, Draft, Tally};
use super::scope::Scope;
use super::{Action, blendable, norm};
use crate::surgery::{Method, OpName, Operation, Spanned};

/// The fields of the operation.
pub(super) struct Fields<'f> {
    pub source_a: &'f Spanned<PathBuf>,
    pub source_b: &'f Spanned<PathBuf>,
    pub ratio: f64,
    pub method: Method,
}

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    fields: &Fields<'_>,
    draft: &mut Draft,
) {
    let mut tally = Tally::default();
    let targets = blendable::targets(context, operation, scope, &mut tally);
    tally.report(draft, &operation.pattern);
    if fields.method == Method::Slerp {
        norm::offset(context, operation, &targets, draft);
    }
    let mut sides = [fields.source_a, fields.source_b].map(|source| {
        let mut tally = Tally::default();
        let found: Vec<_> = match context.donors.get(source) {
            None => vec![None; targets.len()],
            Some((place, donor)) => targets
                .iter()
                .map(|&target| blendable::partner(context, donor, target, OpName::Interpolate, &mut tally))
                .map(|found| found.map(|(position, key)| (place, position, key)))
                .collect(),
        };
        (source, tally, found)
    });
    // One file on both sides has its mistakes once.
    if context.donors.get(fields.source_a).map(|d| d.0) == context.donors.get(fields.source_b).map(|d| d.0) {
        sides[1].1 = Tally::default();
    }
    let [(source_a, tally_a, found_a), (source_b, tally_b, found_b)] = sides;
    tally_a.report(draft, source_a);
    tally_b.report(draft, source_b);
    for ((target, a), b) in targets.into_iter().zip(found_a).zip(found_b) {
        if let (Some((place_a, position_a, key_a)), Some((place_b, position_b, key_b))) = (a, b) {
            let a = draft.uses(place_a, position_a, key_a);
            let b = draft.uses(place_b, position_b, key_b);
            draft.edit(target, Action::Blend { a, b, ratio: fields.ratio, method: fields.method });
        }
    }
}
