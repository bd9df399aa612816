//! [`Head`]: the output head of a broken tie, which an export stores.

use std::ops::Range;

use crate::checkpoint::{Dtype, Key, Origin};
use crate::plan::Plan;

/// The head's tensors. All of them go to the shard of the embedding's first tensor.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) shard: usize,
    /// In key order.
    pub(super) members: Vec<Member>,
}

/// One tensor of the head.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: Key,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    /// The tensor that it was tied to.
    pub(super) tied_to: Key,
    /// The shard and byte range of that tensor.
    pub(super) source: usize,
    pub(super) range: Range<u64>,
    /// Whether a program edits it.
    pub(super) edited: bool,
}

impl Head {
    /// The head, if the plan breaks its tie.
    pub(super) fn of_broken_tie(plan: &Plan) -> Option<Self> {
        let index = &plan.base().weights.index;
        let mut head: Option<Self> = None;
        for &target in plan.untied() {
            let (key, info) = &index[target];
            let Origin::Tied(tied_to) = &info.origin else { continue };
            let Some(Origin::Stored { shard, range }) = index.get(tied_to.as_str()).map(|tied| &tied.origin)
            else {
                continue;
            };
            let member = Member {
                key: key.clone(),
                dtype: info.dtype,
                shape: info.shape.clone(),
                tied_to: tied_to.clone(),
                source: *shard,
                range: range.clone(),
                edited: plan.programs().iter().any(|program| program.target() == target),
            };
            head.get_or_insert(Self { shard: *shard, members: Vec::new() }).members.push(member);
        }
        head
    }
}
