//! `scale`: dense tensors take the factor; an affine set takes it once, in its scales and biases.

use crate::checkpoint::TensorId;
use crate::diagnostic::{Code, Diagnostic, words};
use crate::plan::action::Action;
use crate::plan::planned_operation::{Context, Faults, PlannedOperation, finite, unusable};
use crate::plan::scope::{Scope, What, units};
use crate::plan::working_precision::{Class, working};
use crate::surgery::{Operation, Spanned};

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    factor: &Spanned<f64>,
    planned: &mut PlannedOperation,
) {
    let mut faults = Faults::default();
    let mut partial = Vec::new();
    let mut targets = Vec::new();
    for unit in units(context.facts, scope) {
        if unusable(context, &unit, &mut faults) {
            continue;
        }
        match &unit.what {
            What::Set { set, matched: [codes, scales, biases] } => {
                targets.extend((*codes || *scales).then_some(set.scales));
                targets.extend((*codes || *biases).then_some(set.biases));
                if !codes && scales != biases {
                    partial.push(context.key(unit.first));
                }
            }
            What::Plain(Class::Integer) => {
                let (key, info) = context.entry(unit.first);
                let reason = "`scale` needs float tensors";
                let help = "narrow the pattern, or `exclude` them";
                faults.add_detail(Code::PackedCodes, reason, help, key.as_str(), &info.dtype.to_string());
            }
            What::Plain(Class::Float) => targets.push(unit.first),
            What::Plain(Class::Unloadable) | What::Incomplete(_) | What::Foreign(_) => {
                unreachable!("such a unit is unusable")
            }
        }
    }
    faults.report(planned, &operation.pattern);
    if !partial.is_empty() {
        let message = format!(
            "only one of `.scales` and `.biases` is scaled in {}: {}",
            words::count(partial.len(), "affine set"),
            words::names(&partial),
        );
        let diagnostic = Diagnostic::new(Code::PartialAffineSet, message)
            .help("match the module's `.weight` to scale the weights that the set encodes");
        planned.report(operation.pattern.label_at_use(diagnostic, ""));
    }
    finite(context, planned, "factor", factor, targets.iter().copied());
    let one = |&t: &TensorId| working(context.entry(t).1.dtype, factor.value) == Some(1.0);
    if !targets.is_empty() && targets.iter().all(one) {
        let message = if factor.value.to_bits() == 1f64.to_bits() {
            "a factor of 1 changes nothing".to_owned()
        } else {
            format!("a factor of {} rounds to 1 in the working precision and changes nothing", factor.value)
        };
        let diagnostic =
            Diagnostic::new(Code::NoEffect, message).help("correct the factor, or remove the operation");
        planned.report(factor.label_at_use(diagnostic, ""));
    }
    for &target in &targets {
        planned.edit(target, Action::Scale { factor: factor.value });
    }
    planned.targets = targets;
}
