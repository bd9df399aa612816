//! Checks without a plan: of a file alone, and with a base that cannot be read.

use std::path::Path;

use super::diagnostics_order::finish;
use super::donor::{self, Donors};
use super::planned_operation::Context;
use super::refusal::Refusal;
use super::scope::{self, Facts};
use super::{lint, operation, suggest, unmatched};
use crate::checkpoint::{Checkpoint, ReadError, TensorIndex, Weights};
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::{Matcher, SurgeryFile};

/// Checks a file without a model: everything that needs no base. With `donors`, they are resolved and their headers
/// read. Diagnostics come in file order.
#[must_use]
pub fn check(file: &SurgeryFile, donors: bool) -> Vec<Diagnostic> {
    let mut diagnostics = file.diagnostics.clone();
    if donors {
        let donors = Donors::open(file);
        unmatched_donors(file, &donors, &mut diagnostics);
        diagnostics.extend(donors.diagnostics);
    }
    finish(&mut diagnostics);
    diagnostics
}

/// The refusal when the base cannot be read: the model's mistakes first, then all that [`check`] finds, so that one run
/// reports both.
#[must_use]
pub fn refuse(file: &SurgeryFile, base: &[ReadError]) -> Refusal {
    let mut diagnostics = base_refusals(base);
    diagnostics.extend(check(file, true));
    Refusal { diagnostics }
}

/// Why a base cannot be read, as diagnostics.
#[must_use]
pub(crate) fn base_refusals(errors: &[ReadError]) -> Vec<Diagnostic> {
    errors.iter().map(donor::base_refusal).collect()
}

/// Why weights that were named as a donor, outside of a surgery file, cannot be read.
#[must_use]
pub(crate) fn donor_refusals(path: &Path, errors: &[ReadError]) -> Vec<Diagnostic> {
    errors.iter().map(|error| donor::named_refusal(path, error)).collect()
}

/// Help for a pattern that matches no key of an index: where it stops matching, what is found there, what is near.
#[must_use]
pub(crate) fn no_match_help(index: &TensorIndex, pattern: &str) -> String {
    suggest::help(&suggest::KeyNames::new(index), pattern)
}

/// The same for a donor's keys.
#[must_use]
pub(crate) fn no_donor_match_help(donor: &Weights, pattern: &str) -> String {
    suggest::donor_help(donor, pattern)
}

/// Reports donors that no key can match, whatever the base.
fn unmatched_donors(file: &SurgeryFile, donors: &Donors, diagnostics: &mut Vec<Diagnostic>) {
    for operation in &file.operations {
        if !operation.kind.needs_equal_keys() {
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
                    format!("`{}` matches no tensor of donor `{}`", pattern.as_str(), donor.written);
                let diagnostic = Diagnostic::new(Code::DonorKeyMissing, message).help(format!(
                    "use a donor with the base's keys, which the pattern matches; {}",
                    suggest::donor_help(&donor.weights, pattern.as_str())
                ));
                diagnostics.push(source.label_at_use(diagnostic, ""));
            }
        }
    }
}

/// Checks a file against a base as far as that goes without donors: an operation that takes from a donor only needs
/// keys that its pattern matches.
#[must_use]
pub(crate) fn check_without_donors(file: &SurgeryFile, base: &Checkpoint) -> Vec<Diagnostic> {
    let mut diagnostics = file.diagnostics.clone();
    diagnostics.extend(base.weights.warnings.iter().map(donor::oddity));
    let scopes = scope::gather(&file.operations, &base.weights.index);
    let facts = Facts::gather(base, &scopes);
    let context = Context { base, facts: &facts, donors: &Donors::default() };
    let planned = operation::plan_all(&context, file, &scopes);
    diagnostics.extend(planned.diagnostics);
    diagnostics.extend(lint::operations(file, base, &scopes, &planned.operations));
    diagnostics.extend(unmatched::fragments(file, &base.weights.index));
    finish(&mut diagnostics);
    diagnostics
}
