//! What will be done: every tensor that will change, and the exact program that changes it. A [`Plan`] holds no globs and
//! no options: holding one proves that its file is valid.
//!
//! ```text
//! scope ─▶ donors ─▶ operations ─▶ programs ─▶ lints ─▶ finish
//! ```
//!
//! - `operation/` plans each operation: which tensors it edits, and with which actions;
//! - `suggest/` says what a name that matches nothing may have meant (an index and a text in, help out);
//! - `lint/` looks at what is planned and gives warnings and notes; it changes nothing;
//! - `render/` shows a plan as text and JSON.
//!
//! Planning reads headers and configurations, never a weight.

mod action;
mod check;
pub(crate) mod cost;
mod diagnostics_order;
mod digest;
mod donor;
mod ids;
mod limits;
mod lint;
mod operation;
#[expect(clippy::module_inception, reason = "the file of `Plan`, the type that the module is named after")]
mod plan;
mod planned_operation;
mod program;
mod refusal;
mod regroup;
pub(crate) mod render;
mod scope;
mod step;
mod suggest;
mod summary;
mod tie;
mod unmatched;
mod working_precision;

pub use action::{Action, Region};
pub(crate) use action::{Edit, TensorRef};
pub(crate) use check::{
    base_refusals, check_without_donors, donor_refusals, no_donor_match_help, no_match_help,
};
pub use check::{check, refuse};
pub(crate) use digest::FORMAT_VERSION;
pub(crate) use donor::config_beside;
pub(crate) use ids::StepId;
pub use plan::{Plan, Summary};
pub(crate) use program::Member;
pub use program::Program;
pub use refusal::Refusal;
pub(crate) use step::Step;

use crate::checkpoint::Checkpoint;
use crate::diagnostic::Severity;
pub(crate) use crate::surgery::Method;
use crate::surgery::SurgeryFile;
use diagnostics_order::finish;
use donor::Donors;
use planned_operation::Context;
use scope::Facts;

/// Plans a surgery file against a checkpoint. Takes the checkpoint, because the plan owns its open files.
///
/// # Errors
/// Every mistake in file, checkpoint and donors, in file order.
pub fn plan(file: &SurgeryFile, base: Checkpoint) -> Result<Plan, Refusal> {
    let index = &base.weights.index;
    let (scopes, mut donors) = rayon::join(|| scope::gather(&file.operations, index), || Donors::open(file));
    let mut diagnostics = file.diagnostics.clone();
    diagnostics.extend(base.weights.warnings.iter().map(donor::oddity));
    diagnostics.append(&mut donors.diagnostics);

    let facts = Facts::gather(&base, &scopes);
    let context = Context { base: &base, facts: &facts, donors: &donors };
    let mut planned = operation::plan_all(&context, file, &scopes);
    diagnostics.append(&mut planned.diagnostics);
    diagnostics.extend(lint::operations(file, &base, &scopes, &planned.operations));
    diagnostics.extend(unmatched::fragments(file, index));
    diagnostics.extend(lint::donors::formats(&donors, base.weights.format.as_deref()));
    if diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error) {
        finish(&mut diagnostics);
        return Err(Refusal { diagnostics });
    }

    let used = lint::donors::used(&donors, &planned.operations);
    let steps = step::steps(file, index, &scopes, planned.operations);
    let (mut programs, overwritten) = regroup::regroup(&steps, index, &facts);
    let untied = tie::settle(index, &mut programs);

    diagnostics.extend(lint::donors::unreached(&donors, &file.operations, &used));
    diagnostics.extend(lint::overwritten::notes(file, &overwritten, &steps));
    diagnostics.extend(lint::whole_model::notes(file, &base, &donors, &programs));
    diagnostics.extend(lint::ties::notes(file, &base, &programs, &untied));

    finish(&mut diagnostics);
    let donors = donors.list;
    let summary = Summary::new(steps.len(), &programs, &donors);
    let digest = digest::digest(&base.weights, &donors, &programs);
    let file = Some(file.source.path.clone());
    Ok(Plan { base, donors, steps, programs, diagnostics, summary, digest, untied, file })
}
