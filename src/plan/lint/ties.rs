//! Ties between embedding and head that are broken, or that edit more than was named.

use crate::checkpoint::{Checkpoint, Key, Role, TensorId, is_other_tower};
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::ids::StepId;
use crate::plan::program::Program;
use crate::plan::tie;
use crate::surgery::SurgeryFile;

/// Maximum number of patterns that a note points at.
const MAX_LABELS: usize = 8;

/// Notes and warnings about the ties of the base; `untied` are the heads whose tie is broken.
pub(in crate::plan) fn notes(
    file: &SurgeryFile,
    base: &Checkpoint,
    programs: &[Program],
    untied: &[TensorId],
) -> Vec<Diagnostic> {
    let broken = (!untied.is_empty()).then(|| broken(file, base, programs));
    shared(file, base, programs).into_iter().chain(broken).collect()
}

/// Notes that a vision-language model, whose family renames tensors after surgery, ties the head to the edited
/// embedding.
fn shared(file: &SurgeryFile, base: &Checkpoint, programs: &[Program]) -> Option<Diagnostic> {
    let entries = base.weights.index.entries();
    let config = &base.config;
    if !config.is_vision_language || config.tied_embeddings == Some(false) {
        return None;
    }
    if entries.iter().any(|(key, _)| Role::of(key) == Role::Head) {
        return None;
    }
    let is_embedding = |key: &Key| Role::of(key) == Role::Embedding && !is_other_tower(key);
    let edited: Vec<TensorId> =
        programs.iter().filter(|program| is_embedding(program.key())).map(Program::target).collect();
    let key = &base.weights.index[*edited.last()?].0;
    let message =
        format!("the model has no separate head: this edit of `{}` also changes the head", key.stem());
    let diagnostic = Diagnostic::new(Code::SharedEmbedding, message)
        .help("no change is needed, if both are meant to change");
    Some(label_acting(diagnostic, file, programs, |target| edited.contains(&target)))
}

fn broken(file: &SurgeryFile, base: &Checkpoint, programs: &[Program]) -> Diagnostic {
    let index = &base.weights.index;
    let (heads, embeddings): (Vec<TensorId>, Vec<TensorId>) = tie::pairs(index).into_iter().unzip();
    let name = |side: &[TensorId]| index[side[side.len() - 1]].0.stem().to_owned();
    let (head, embedding) = (name(&heads), name(&embeddings));
    let edited = |side: &[TensorId]| programs.iter().any(|program| side.contains(&program.target()));
    let (message, help) = match (edited(&heads), edited(&embeddings)) {
        (true, false) => (
            format!("`{head}` is tied to `{embedding}` and only the head is edited: the tie is broken"),
            format!(
                "to edit both, match `{embedding}.*` too; otherwise the embedding keeps its original weights"
            ),
        ),
        (false, true) => (
            format!("`{head}` is tied to `{embedding}` and only the embedding is edited: the tie is broken"),
            format!("to edit both, match `{head}.*` too; otherwise the head keeps its original weights"),
        ),
        (true, true) | (false, false) => (
            format!("`{head}` is tied to `{embedding}` and they are edited differently: the tie is broken"),
            "give both the same operations to keep the tie".to_owned(),
        ),
    };
    let diagnostic = Diagnostic::new(Code::TiedEmbedding, message).help(help);
    label_acting(diagnostic, file, programs, |target| heads.contains(&target) || embeddings.contains(&target))
}

/// Labels the patterns of the operations that act on some tensors, in file order.
fn label_acting(
    diagnostic: Diagnostic,
    file: &SurgeryFile,
    programs: &[Program],
    is_meant: impl Fn(TensorId) -> bool,
) -> Diagnostic {
    let mut steps: Vec<StepId> = programs
        .iter()
        .filter(|program| is_meant(program.target()))
        .flat_map(|program| program.actions().iter().map(|(step, _)| *step))
        .collect();
    steps.sort_unstable();
    steps.dedup();
    let operations =
        steps.into_iter().take(MAX_LABELS).filter_map(|step| file.operations.get(step.position()));
    operations.fold(diagnostic, |diagnostic, operation| operation.pattern.label_at_use(diagnostic, ""))
}
