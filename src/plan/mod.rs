//! What will be done: every tensor that will change and the exact program that changes it. No globs, no options, no
//! doubts: holding a [`Plan`] is the proof that its file is right.

mod add;
mod alternative;
mod blendable;
mod check;
pub(crate) mod cost;
mod digest;
mod donor;
mod draft;
pub mod explain;
mod interpolate;
pub mod json;
mod limit;
mod near;
mod norm;
mod number;
mod operations;
mod order;
mod others;
mod parts;
mod program;
mod prune;
mod replace;
mod rewrite;
mod scale;
mod scope;
mod subject;
mod summary;
mod tie;
mod types;
mod vocabulary;
mod whole;

pub use check::{
    base_refusals, check, check_without_donors, donor_refusals, no_donor_match_help, no_match_help, refuse,
};
pub use donor::{Donor, config_beside};
pub use program::Program;
pub use types::{Action, Edit, Plan, Refusal, Region, Step, Summary, TensorRef};

use crate::checkpoint::Checkpoint;
use crate::diagnostic::Severity;
pub use crate::surgery::Method;
use crate::surgery::SurgeryFile;
use donor::Donors;
use operations::draft_all;
use order::finish;

/// Plans a surgery file against a checkpoint. Takes the checkpoint, because the plan owns its open files.
///
/// # Errors
/// Every mistake found in file, checkpoint and donors, in file order.
pub fn plan(file: &SurgeryFile, base: Checkpoint) -> Result<Plan, Refusal> {
    let (scopes, mut donors) =
        rayon::join(|| scope::gather(&file.operations, &base.weights.index), || Donors::open(file));
    let mut diagnostics = file.diagnostics.clone();
    diagnostics.extend(base.weights.warnings.iter().map(donor::oddity));
    diagnostics.append(&mut donors.diagnostics);
    let mut drafts = match limit::too_many(&file.operations, &scopes) {
        Some(refusal) => {
            diagnostics.push(refusal);
            Vec::new()
        }
        None => draft_all(file, &base, &scopes, &donors),
    };
    for draft in &mut drafts {
        diagnostics.append(&mut draft.diagnostics);
    }
    diagnostics.extend(near::fragments(file, &base.weights.index));
    diagnostics.extend(donors.formats(base.weights.format.as_deref()));
    if diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error) {
        finish(&mut diagnostics);
        return Err(Refusal { diagnostics });
    }
    diagnostics.extend(donors.unreached(&file.operations, drafts.iter().flat_map(|draft| &draft.reached)));
    let steps: Vec<Step> = file
        .operations
        .iter()
        .zip(&scopes)
        .zip(drafts)
        .map(|planned| Step::new(&base.weights.index, planned))
        .collect();
    let program::Regrouped { mut programs, overwritten } = program::regroup(&steps, &base.weights.index);
    diagnostics.extend(program::overwritten_advice(file, &overwritten, &steps));
    diagnostics.extend(whole::advice(file, &base, &donors, &programs));
    let untied = tie::settle(file, &base, &steps, &mut programs, &mut diagnostics);
    finish(&mut diagnostics);
    let donors = donors.list;
    let summary = Summary::new(steps.len(), &programs, &donors);
    let digest = digest::digest(&base.weights, &donors, &programs);
    let file = Some(file.source.path.clone());
    Ok(Plan { base, donors, steps, programs, diagnostics, summary, digest, untied, file })
}
