//! What can be said without a plan: of a file alone, and of a base that cannot be read.

use std::path::Path;

use super::donor::{self, Donors};
use super::{Refusal, limit, near, scope};
use crate::checkpoint::{Checkpoint, ReadError, TensorIndex, Weights};
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::{Kind, Matcher, SurgeryFile};

/// Checks a file without a model: everything that needs no base. With `donors`, they are resolved and their headers
/// read. Diagnostics come in file order.
#[must_use]
pub fn check(file: &SurgeryFile, donors: bool) -> Vec<Diagnostic> {
    let mut diagnostics = file.diagnostics.clone();
    if donors {
        let donors = Donors::open(file);
        unmatched(file, &donors, &mut diagnostics);
        diagnostics.extend(donors.diagnostics);
    }
    super::finish(&mut diagnostics);
    diagnostics
}

/// What to answer when the base cannot be read: the model's mistakes first, then all that [`check`] finds, so that one
/// run reports both.
#[must_use]
pub fn refuse(file: &SurgeryFile, base: &[ReadError]) -> Refusal {
    let mut diagnostics = base_refusals(base);
    diagnostics.extend(check(file, true));
    Refusal { diagnostics }
}

/// What to say of a base that cannot be read.
#[must_use]
pub fn base_refusals(errors: &[ReadError]) -> Vec<Diagnostic> {
    errors.iter().map(donor::base_refusal).collect()
}

/// What to say of weights that were named as a donor, outside of any surgery file.
#[must_use]
pub fn donor_refusals(path: &Path, errors: &[ReadError]) -> Vec<Diagnostic> {
    errors.iter().map(|error| donor::named_refusal(path, error)).collect()
}

/// The help for a pattern that matches no key of an index: where it stops matching, what stands there, what is near.
#[must_use]
pub fn no_match_help(index: &TensorIndex, pattern: &str) -> String {
    near::help(&near::Vocabulary::new(index), pattern)
}

/// The same for a donor's keys.
#[must_use]
pub fn no_donor_match_help(donor: &Weights, pattern: &str) -> String {
    near::donor_help(donor, pattern)
}

/// Reports donors that no key can match, whatever the base: both sides of `add` and `interpolate` have one name.
fn unmatched(file: &SurgeryFile, donors: &Donors, diagnostics: &mut Vec<Diagnostic>) {
    for operation in &file.operations {
        if !matches!(operation.kind, Kind::Add { .. } | Kind::Interpolate { .. }) {
            continue;
        }
        for source in operation.sources() {
            let Some((_, donor)) = donors.get(source) else { continue };
            let pattern = &operation.pattern.value;
            let matcher = Matcher::new(pattern);
            let found = donor.weights.index.entries().iter().any(|(key, _)| {
                let head =
                    key.as_str().strip_prefix("model.embed_tokens.").map(|rest| format!("lm_head.{rest}"));
                matcher.matches(key.as_str()) || head.is_some_and(|head| matcher.matches(&head))
            });
            if !found {
                let message =
                    format!("donor `{}` has no tensor that `{}` matches", donor.written, pattern.as_str());
                let diagnostic = Diagnostic::new(Code::DonorKeyMissing, message).help(format!(
                    "donor tensors are found by the base's key, which the pattern matches; {}",
                    near::donor_help(&donor.weights, pattern.as_str())
                ));
                diagnostics.push(source.label_at_use(diagnostic, ""));
            }
        }
    }
}

/// Checks a file against a base as far as that goes without donors: an operation that takes from a donor only needs
/// keys that its pattern matches.
#[must_use]
pub fn check_without_donors(file: &SurgeryFile, base: &Checkpoint) -> Vec<Diagnostic> {
    let mut diagnostics = file.diagnostics.clone();
    diagnostics.extend(base.weights.warnings.iter().map(donor::oddity));
    let scopes = scope::gather(&file.operations, &base.weights.index);
    if let Some(refusal) = limit::too_many(&file.operations, &scopes) {
        diagnostics.push(refusal);
    } else {
        let drafts = super::draft_all(file, base, &scopes, &Donors::default());
        diagnostics.extend(drafts.into_iter().flat_map(|draft| draft.diagnostics));
    }
    diagnostics.extend(near::fragments(file, &base.weights.index));
    super::finish(&mut diagnostics);
    diagnostics
}
