//! Tied embeddings: kept where both sides are edited alike, broken where they are not.

use super::{Program, Step};
use crate::checkpoint::{Checkpoint, Key, Origin, Role, is_other_tower};
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::SurgeryFile;

/// Settles the ties of the base. Returns the heads (positions in the index) that no longer share their embedding's
/// weights.
pub(super) fn settle(
    file: &SurgeryFile,
    base: &Checkpoint,
    steps: &[Step],
    programs: &mut Vec<Program>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<usize> {
    let index = &base.weights.index;
    // The head's tensors (an affine set has three), each with the embedding's.
    let pairs: Vec<(usize, usize)> = index
        .entries()
        .iter()
        .enumerate()
        .filter_map(|(head, (_, info))| match &info.origin {
            Origin::Tied(key) => index.position(key.as_str()).map(|embedding| (head, embedding)),
            Origin::Stored { .. } => None,
        })
        .collect();
    let find = |programs: &[Program], target| programs.binary_search_by_key(&target, |p| p.target).ok();
    let alike =
        pairs.iter().all(|&(head, embedding)| match (find(programs, head), find(programs, embedding)) {
            (None, None) => true,
            (Some(a), Some(b)) => same_actions(&programs[a], &programs[b]),
            _ => false,
        });
    diagnostics.extend(shared(file, base, steps, programs));
    if alike {
        for (head, embedding) in pairs {
            if let Some(place) = find(programs, embedding) {
                programs[place].shared_with = Some(index.entries()[head].0.clone());
            }
            if let Some(place) = find(programs, head) {
                programs.remove(place);
            }
        }
        return Vec::new();
    }
    let (heads, embeddings): (Vec<usize>, Vec<usize>) = pairs.into_iter().unzip();
    diagnostics.push(broken(file, base, steps, programs, &heads, &embeddings));
    heads
}

/// Advises that a vision-language model, whose family renames tensors after surgery, ties the head to what the
/// embedding has become.
fn shared(file: &SurgeryFile, base: &Checkpoint, steps: &[Step], programs: &[Program]) -> Option<Diagnostic> {
    let entries = base.weights.index.entries();
    let config = &base.config;
    if !config.is_vision_language || config.tied_embeddings == Some(false) {
        return None;
    }
    if entries.iter().any(|(key, _)| Role::of(key) == Role::Head) {
        return None;
    }
    let is_embedding = |key: &Key| Role::of(key) == Role::Embedding && !is_other_tower(key);
    let edited: Vec<usize> = programs.iter().filter(|p| is_embedding(&p.key)).map(|p| p.target).collect();
    let key = &entries[*edited.last()?].0;
    let message =
        format!("the model has no head of its own: this edit of `{}` is one of the head too", key.stem());
    let diagnostic =
        Diagnostic::new(Code::SharedEmbedding, message).help("nothing to do, if both are meant to change");
    Some(label_all(diagnostic, file, acting(steps, programs, &edited, &[])))
}

fn same_actions(a: &Program, b: &Program) -> bool {
    a.actions.iter().map(|(_, action)| action).eq(b.actions.iter().map(|(_, action)| action))
}

fn broken(
    file: &SurgeryFile,
    base: &Checkpoint,
    steps: &[Step],
    programs: &[Program],
    heads: &[usize],
    embeddings: &[usize],
) -> Diagnostic {
    let name = |positions: &[usize]| {
        let key = &base.weights.index.entries()[positions[positions.len() - 1]].0;
        key.stem().to_owned()
    };
    let (head, embedding) = (name(heads), name(embeddings));
    let edited = |side: &[usize]| programs.iter().any(|program| side.contains(&program.target));
    let (message, help) = match (edited(heads), edited(embeddings)) {
        (true, false) => (
            format!("`{head}` is tied to `{embedding}` and only the head is edited: the tie is broken"),
            format!("the embedding keeps its weights; to edit both, match `{embedding}.*` too"),
        ),
        (false, true) => (
            format!("`{head}` is tied to `{embedding}` and only the embedding is edited: the tie is broken"),
            format!("the head keeps its weights; to edit both, match `{head}.*` too"),
        ),
        _ => (
            format!("`{head}` is tied to `{embedding}` and they are edited differently: the tie is broken"),
            "give both the same operations to keep the tie".to_owned(),
        ),
    };
    let diagnostic = Diagnostic::new(Code::TiedEmbedding, message).help(help);
    label_all(diagnostic, file, acting(steps, programs, heads, embeddings))
}

/// Labels the patterns of some operations.
fn label_all(diagnostic: Diagnostic, file: &SurgeryFile, operations: Vec<usize>) -> Diagnostic {
    /// More patterns than these say no more.
    const MOST: usize = 8;
    let find = |index| file.operations.binary_search_by_key(&index, |operation| operation.index).ok();
    operations
        .into_iter()
        .take(MOST)
        .filter_map(|index| file.operations.get(find(index)?))
        .fold(diagnostic, |diagnostic, operation| operation.pattern.label_at_use(diagnostic, ""))
}

/// The operations that act on either side, in file order.
fn acting(steps: &[Step], programs: &[Program], heads: &[usize], embeddings: &[usize]) -> Vec<usize> {
    let mut acting: Vec<usize> = programs
        .iter()
        .filter(|program| heads.contains(&program.target) || embeddings.contains(&program.target))
        .flat_map(|program| program.actions.iter().map(|(step, _)| steps[*step].index))
        .collect();
    acting.sort_unstable();
    acting.dedup();
    acting
}
