//! Donors that another framework wrote than the base, and donor tensors that no operation uses.

use std::collections::HashSet;

use crate::diagnostic::{Code, Diagnostic, words};
use crate::plan::donor::{Donor, Donors};
use crate::plan::ids::DonorId;
use crate::plan::planned_operation::PlannedOperation;
use crate::surgery::{Kind, Operation};

/// Warns of donors that another framework wrote than the base.
pub(in crate::plan) fn formats(donors: &Donors, base: Option<&str>) -> Vec<Diagnostic> {
    let Some(base) = base else { return Vec::new() };
    let opened = donors.list.iter().zip(&donors.first_use);
    opened
        .filter_map(|(donor, source)| {
            let format = donor.weights.format.as_deref().filter(|format| *format != base)?;
            let message = format!("the base has format `{base}`, donor `{}` has `{format}`", donor.written);
            let diagnostic = Diagnostic::new(Code::DonorFormat, message).help(
                "convert both with the same tool: conversions may change values (some norms are stored as w or as \
                 1 + w)",
            );
            Some(source.label_at_use(diagnostic, ""))
        })
        .collect()
}

/// For each donor, which of its tensors the operations use.
pub(in crate::plan) fn used(donors: &Donors, planned: &[PlannedOperation]) -> Vec<Vec<bool>> {
    let unused = |donor: &Donor| vec![false; donor.weights.index.entries().len()];
    let mut used: Vec<Vec<bool>> = donors.list.iter().map(unused).collect();
    for &(donor, tensor) in planned.iter().flat_map(|planned| &planned.reached) {
        used[donor.position()][tensor.position()] = true;
    }
    used
}

/// Notes on donor tensors that no operation uses. If most of a donor is unused and nothing is added from it, a part was
/// chosen, and the rest is only counted.
pub(in crate::plan) fn unreached(
    donors: &Donors,
    operations: &[Operation],
    used: &[Vec<bool>],
) -> Vec<Diagnostic> {
    let added: HashSet<DonorId> = operations
        .iter()
        .filter_map(|operation| {
            let Kind::Add { source, .. } = &operation.kind else { return None };
            donors.get(source).map(|(place, _)| place)
        })
        .collect();
    let opened = donors.list.iter().zip(&donors.first_use).zip(used).enumerate();
    opened
        .filter_map(|(place, ((donor, source), used))| {
            let all = used.len();
            let entries = donor.weights.index.entries().iter().zip(used);
            let left: Vec<&str> =
                entries.filter(|(_, used)| !**used).map(|((key, _), _)| key.as_str()).collect();
            if left.is_empty() {
                return None;
            }
            let (message, help) = if left.len() * 2 > all && !added.contains(&DonorId::new(place)) {
                let message = format!(
                    "{} of the {all} tensors of donor `{}` {} used",
                    all - left.len(),
                    donor.written,
                    if all - left.len() == 1 { "is" } else { "are" },
                );
                (message, "no change is needed if the others were left out on purpose")
            } else {
                let message = format!(
                    "no pattern uses {} of donor `{}`: {}",
                    words::count(left.len(), "tensor"),
                    donor.written,
                    words::names(&left),
                );
                (message, "widen a pattern if they were meant to be used")
            };
            Some(source.label_at_use(Diagnostic::new(Code::UnreachedDonor, message).help(help), ""))
        })
        .collect()
}
