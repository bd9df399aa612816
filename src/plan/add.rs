//! `add`: base + alpha · donor, tensor by tensor under the same key (task vectors; Ilharco et al., 2023).

use std::path::PathBuf;

use super::draft::{Context, Draft, Tally, finite};
use super::scope::Scope;
use super::{Action, blendable, number};
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::{OpName, Operation, Spanned};

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    source: &Spanned<PathBuf>,
    alpha: &Spanned<f64>,
    draft: &mut Draft,
) {
    let mut tally = Tally::default();
    let targets = blendable::targets(context, operation, scope, &mut tally);
    tally.report(draft, &operation.pattern);
    finite(context, draft, "alpha", alpha, targets.iter().copied());
    let zero = |&t: &usize| number::working(context.entry(t).1.dtype, alpha.value) == Some(0.0);
    if !targets.is_empty() && targets.iter().all(zero) {
        let message = if alpha.value == 0.0 {
            "an alpha of 0 changes nothing".to_owned()
        } else {
            format!(
                "an alpha of {:e} is 0 in the precision that is computed in, and changes nothing",
                alpha.value
            )
        };
        let diagnostic = Diagnostic::new(Code::NoEffect, message)
            .help("remove the operation, or give the alpha that was meant");
        draft.say(alpha.label_at_use(diagnostic, ""));
    }
    let Some((place, donor)) = context.donors.get(source) else { return };
    let mut tally = Tally::default();
    for target in targets {
        if let Some((position, key)) = blendable::partner(context, donor, target, OpName::Add, &mut tally) {
            let donor = draft.uses(place, position, key);
            draft.edit(target, Action::Add { donor, alpha: alpha.value });
        }
    }
    tally.report(draft, source);
}
