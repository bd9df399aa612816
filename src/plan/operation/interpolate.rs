//! `interpolate`: blend(a, b) of two donors, whatever the base holds.

use std::path::PathBuf;

use super::blendable;
use crate::plan::action::Action;
use crate::plan::planned_operation::{Context, Faults, PlannedOperation};
use crate::plan::scope::Scope;
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
    planned: &mut PlannedOperation,
) {
    let mut faults = Faults::default();
    let targets = blendable::targets(context, operation, scope, &mut faults);
    faults.report(planned, &operation.pattern);
    let mut sides = [fields.source_a, fields.source_b].map(|source| {
        let mut faults = Faults::default();
        let found: Vec<_> = match context.donors.get(source) {
            None => vec![None; targets.len()],
            Some((place, donor)) => targets
                .iter()
                .map(|&target| blendable::partner(context, donor, target, OpName::Interpolate, &mut faults))
                .map(|found| found.map(|(position, key)| (place, position, key)))
                .collect(),
        };
        (source, faults, found)
    });
    // If both sides are one file, its mistakes are reported once.
    if context.donors.get(fields.source_a).map(|d| d.0) == context.donors.get(fields.source_b).map(|d| d.0) {
        sides[1].1 = Faults::default();
    }
    let [(source_a, tally_a, found_a), (source_b, tally_b, found_b)] = sides;
    tally_a.report(planned, source_a);
    tally_b.report(planned, source_b);
    for ((&target, a), b) in targets.iter().zip(found_a).zip(found_b) {
        if let (Some((place_a, position_a, key_a)), Some((place_b, position_b, key_b))) = (a, b) {
            let a = planned.uses(place_a, position_a, key_a);
            let b = planned.uses(place_b, position_b, key_b);
            planned.edit(target, Action::Blend { a, b, ratio: fields.ratio, method: fields.method });
        }
    }
    planned.targets = targets;
}
