//! Operations whose edits later ones overwrite.

use std::collections::BTreeSet;

use super::super::Step;
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::SurgeryFile;

/// An operation is overwritten by one or two; a file of thousands that overwrite each other was made by a program.
const MAX_LABELS: usize = 8;

/// One note for each operation of which later ones overwrite something.
pub(in crate::plan) fn notes(
    file: &SurgeryFile,
    overwritten: &[(usize, usize, usize)],
    steps: &[Step],
) -> Vec<Diagnostic> {
    let mut sorted = overwritten.to_vec();
    sorted.sort_unstable();
    let mut notes = Vec::new();
    for mine in sorted.chunk_by(|a, b| a.0 == b.0) {
        let step = mine[0].0;
        let (Some(operation), Some(edits)) = (file.operations.get(step), steps.get(step)) else { continue };
        let by: BTreeSet<usize> = mine.iter().map(|(_, by, _)| *by).collect();
        let all = edits.edits.len();
        let message = if mine.len() == all {
            "later operations overwrite every edit of this one; it is skipped".to_owned()
        } else {
            let are = if mine.len() == 1 { "it is" } else { "they are" };
            format!("later operations overwrite {} of the {all} edits of this one; {are} skipped", mine.len())
        };
        let mut diagnostic = Diagnostic::new(Code::Overwritten, message)
            .help("move the operation after the one that overwrites it, or remove it");
        diagnostic = operation.op.mark(diagnostic, "");
        for operation in by.into_iter().take(MAX_LABELS).filter_map(|by| file.operations.get(by)) {
            diagnostic = operation.op.mark(diagnostic, "overwrites it");
        }
        notes.push(diagnostic);
    }
    notes
}
