//! `prune`: zeroes structure and keeps shapes.

mod channels;
mod heads;
mod ids;
mod layer;
mod linear;
mod reached;
mod slices;

use crate::plan::planned_operation::{Context, PlannedOperation};
use crate::plan::scope::Scope;
use crate::surgery::{Granularity, Operation, Spanned};

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    granularity: Granularity,
    ids: &Spanned<Vec<Spanned<u64>>>,
    planned: &mut PlannedOperation,
) {
    // Matched keys that stay as they are count as skipped.
    planned.acts_on(0);
    let ids = ids::distinct(ids, planned);
    match granularity {
        Granularity::Layer => layer::plan(context, operation, scope, &ids, planned),
        Granularity::AttentionHead => heads::plan(context, operation, scope, &ids, planned),
        Granularity::MlpChannel => channels::plan(context, operation, scope, &ids, planned),
    }
}
