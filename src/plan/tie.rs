//! Tied embeddings: kept where both sides are edited alike, broken where they are not.

use super::program::Program;
use crate::checkpoint::{Origin, TensorId, TensorIndex};

/// Settles the ties of the base: a kept tie has one program, the embedding's. Returns the heads that no longer share their embedding's weights. An affine head is kept or broken as a whole.
pub(super) fn settle(index: &TensorIndex, programs: &mut Vec<Program>) -> Vec<TensorId> {
    let pairs = pairs(index);
    let find = |programs: &[Program], target| programs.binary_search_by_key(&target, Program::target).ok();
    let alike =
        pairs.iter().all(|&(head, embedding)| match (find(programs, head), find(programs, embedding)) {
            (None, None) => true,
            (Some(a), Some(b)) => same_actions(&programs[a], &programs[b]),
            (Some(_), None) | (None, Some(_)) => false,
        });
    if !alike {
        return pairs.into_iter().map(|(head, _)| head).collect();
    }
    for (head, embedding) in pairs {
        if let Some(place) = find(programs, embedding) {
            programs[place].share_with(index[head].0.clone());
        }
        if let Some(place) = find(programs, head) {
            programs.remove(place);
        }
    }
    Vec::new()
}

/// The head's tensors (an affine set has three), each with the embedding's that it is tied to.
pub(super) fn pairs(index: &TensorIndex) -> Vec<(TensorId, TensorId)> {
    let tied = index.ids().filter_map(|head| match &index[head].1.origin {
        Origin::Tied(key) => index.position(key.as_str()).map(|embedding| (head, embedding)),
        Origin::Stored { .. } => None,
    });
    tied.collect()
}

fn same_actions(a: &Program, b: &Program) -> bool {
    a.actions().iter().map(|(_, action)| action).eq(b.actions().iter().map(|(_, action)| action))
}
