//! Operations whose edits later ones overwrite.

use std::collections::BTreeSet;

use crate::diagnostic::{Code, Diagnostic};
use crate::plan::ids::StepId;
use crate::plan::regroup::Overwritten;
use crate::plan::step::Step;
use crate::surgery::SurgeryFile;

/// Maximum number of overwriting operations that a note points at. By hand one or two are written; a program may write
/// thousands.
const MAX_LABELS: usize = 8;

/// One note for each operation that later ones overwrite, in part or as a whole.
pub(in crate::plan) fn notes(
    file: &SurgeryFile,
    overwritten: &[Overwritten],
    steps: &[Step],
) -> Vec<Diagnostic> {
    let mut sorted = overwritten.to_vec();
    sorted.sort_unstable();
    let mut notes = Vec::new();
    for mine in sorted.chunk_by(|a, b| a.step == b.step) {
        let step = mine[0].step;
        let (Some(operation), Some(edits)) =
            (file.operations.get(step.position()), steps.get(step.position()))
        else {
            continue;
        };
        let by: BTreeSet<StepId> = mine.iter().map(|edit| edit.by).collect();
        let all = edits.edits.len();
        let message = if mine.len() == all {
            "later operations overwrite every edit of this one; it is skipped".to_owned()
        } else {
            let are = if mine.len() == 1 { "it is" } else { "they are" };
            format!("later operations overwrite {} of the {all} edits of this one; {are} skipped", mine.len())
        };
        let mut diagnostic = Diagnostic::new(Code::Overwritten, message)
            .help("move the operation after the one that overwrites it, or remove it");
        diagnostic = operation.op.label_at_use(diagnostic, "");
        for operation in by.into_iter().take(MAX_LABELS).filter_map(|by| file.operations.get(by.position())) {
            diagnostic = operation.op.label_at_use(diagnostic, "overwrites it");
        }
        notes.push(diagnostic);
    }
    notes
}
