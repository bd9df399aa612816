//! `add`: base + alpha · donor, tensor by tensor under the same key (task vectors; Ilharco et al., 2023).

use std::path::PathBuf;

use super::blendable;
use crate::checkpoint::TensorId;
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::action::Action;
use crate::plan::planned_operation::{Context, Faults, PlannedOperation, finite};
use crate::plan::scope::Scope;
use crate::plan::working_precision::working;
use crate::surgery::{OpName, Operation, Spanned};

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    source: &Spanned<PathBuf>,
    alpha: &Spanned<f64>,
    planned: &mut PlannedOperation,
) {
    let mut faults = Faults::default();
    let targets = blendable::targets(context, operation, scope, &mut faults);
    faults.report(planned, &operation.pattern);
    finite(context, planned, "alpha", alpha, targets.iter().copied());
    let zero = |&t: &TensorId| working(context.entry(t).1.dtype, alpha.value) == Some(0.0);
    if !targets.is_empty() && targets.iter().all(zero) {
        let message = if alpha.value == 0.0 {
            "an alpha of 0 changes nothing".to_owned()
        } else {
            format!("an alpha of {:e} rounds to 0 in the working precision and changes nothing", alpha.value)
        };
        let diagnostic =
            Diagnostic::new(Code::NoEffect, message).help("correct the alpha, or remove the operation");
        planned.report(alpha.label_at_use(diagnostic, ""));
    }
    let Some((place, donor)) = context.donors.get(source) else { return };
    let mut faults = Faults::default();
    for target in targets {
        if let Some((position, key)) = blendable::partner(context, donor, target, OpName::Add, &mut faults) {
            let donor = planned.uses(place, position, key);
            planned.edit(target, Action::Add { donor, alpha: alpha.value });
        }
    }
    faults.report(planned, source);
}
