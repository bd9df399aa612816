//! [`Head`]: the output head of a broken tie, which an export has to store.

use std::ops::Range;

use crate::checkpoint::{Dtype, Key, Origin};
use crate::plan::Plan;

/// The head's tensors. They all go to one shard: that of the embedding's first.
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
    /// The tensor it was tied to.
    pub(super) tied_to: Key,
    /// Where that tensor's bytes are.
    pub(super) source: usize,
    pub(super) range: Range<u64>,
    /// Whether a program makes it.
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
