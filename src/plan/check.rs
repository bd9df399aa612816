//! What can be said without a plan: of a file alone, and of a base that cannot be read.

use super::Refusal;
use super::donor::{self, Donors};
use crate::checkpoint::ReadError;
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::{Kind, SurgeryFile};

use super::say;

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
    super::sort(&mut diagnostics);
    diagnostics
}

/// What to answer when the base cannot be read: the model's mistakes first, then all that [`check`] finds, so that one
/// run reports both.
#[must_use]
pub fn refuse(file: &SurgeryFile, base: &[ReadError]) -> Refusal {
    let mut diagnostics: Vec<Diagnostic> = base.iter().map(donor::base_refusal).collect();
    diagnostics.extend(check(file, true));
    Refusal { diagnostics }
}

/// Reports donors that no key can match, whatever the base: both sides of `add` and `interpolate` have one name.
fn unmatched(file: &SurgeryFile, donors: &Donors, diagnostics: &mut Vec<Diagnostic>) {
    for operation in &file.operations {
        if !matches!(operation.kind, Kind::Add { .. } | Kind::Interpolate { .. }) {
            continue;
        }
        for source in donor::sources(operation) {
            let Some((_, donor)) = donors.get(source) else { continue };
            let pattern = &operation.pattern.value;
            let matches = donor.weights.index.entries().iter().any(|(key, _)| {
                let head =
                    key.as_str().strip_prefix("model.embed_tokens.").map(|rest| format!("lm_head.{rest}"));
                pattern.matches(key.as_str()) || head.is_some_and(|head| pattern.matches(&head))
            });
            if !matches {
                let message =
                    format!("donor `{}` has no tensor that `{}` matches", donor.written, pattern.as_str());
                let diagnostic = Diagnostic::new(Code::DonorKeyMissing, message)
                    .help("donor tensors are found by the base's key, which the pattern matches");
                diagnostics.push(say::label(diagnostic, source, ""));
            }
        }
    }
}
