//! `scale`: dense tensors take the factor; an affine set takes it once, in its scales and biases.

use super::draft::{Context, Draft, Tally, finite, unusable};
use super::number::{self, Class};
use super::scope::{Scope, What, units};
use super::{Action, norm};
use crate::diagnostic::{Code, Diagnostic, words};
use crate::surgery::{Operation, Spanned};

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    factor: &Spanned<f64>,
    draft: &mut Draft,
) {
    let mut tally = Tally::default();
    let mut partial = Vec::new();
    let mut targets = Vec::new();
    for unit in units(context.facts, scope) {
        if unusable(context, &unit, &mut tally) {
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
                let reason = "`scale` cannot compute with tensors that are not floats";
                let help = "narrow the pattern, or `exclude` them";
                tally.add_detail(Code::PackedCodes, reason, help, key.as_str(), &info.dtype.to_string());
            }
            _ => targets.push(unit.first),
        }
    }
    tally.report(draft, &operation.pattern);
    if !partial.is_empty() {
        let message = format!(
            "only one of `.scales` and `.biases` is scaled in {}: {}",
            words::count(partial.len(), "affine set"),
            words::names(&partial),
        );
        let diagnostic = Diagnostic::new(Code::PartialAffineSet, message)
            .help("match the module's `.weight` to scale the weights that the set stands for");
        draft.say(operation.pattern.label_at_use(diagnostic, ""));
    }
    finite(context, draft, "factor", factor, targets.iter().copied());
    norm::offset(context, operation, &targets, draft);
    let one = |&t: &usize| number::working(context.entry(t).1.dtype, factor.value) == Some(1.0);
    if !targets.is_empty() && targets.iter().all(one) {
        let message = if factor.value.to_bits() == 1f64.to_bits() {
            "a factor of 1 changes nothing".to_owned()
        } else {
            format!(
                "a factor of {} is 1 in the precision that is computed in, and changes nothing",
                factor.value
            )
        };
        let diagnostic = Diagnostic::new(Code::NoEffect, message)
            .help("remove the operation, or give the factor that was meant");
        draft.say(factor.label_at_use(diagnostic, ""));
    }
    for target in targets {
        draft.edit(target, Action::Scale { factor: factor.value });
    }
}
