//! [`OtherOperations`]: what the rest of the file does to a tensor, for notes about what an operation leaves behind.

use std::collections::HashSet;
use std::sync::Arc;

use crate::checkpoint::TensorId;
use crate::plan::ids::OperationId;
use crate::plan::scope::Scope;
use crate::surgery::{Granularity, Kind, Operation};

/// Maximum number of operations that zero heads to consider.
const MAX_HEAD_PRUNES: usize = 256;

/// The operations of a file, by what lints ask of them.
#[derive(Debug, Default)]
pub(super) struct OtherOperations<'a> {
    /// For each tensor, whether some `replace` reaches it; empty if there is none.
    replaced: Vec<bool>,
    /// The operations that zero heads: their place in the file, their heads, what they reach.
    heads: Vec<(OperationId, HashSet<u64>, &'a Scope)>,
}

impl<'a> OtherOperations<'a> {
    pub(super) fn gather(operations: &[Operation], scopes: &'a [Arc<Scope>], tensors: usize) -> Self {
        let mut others = Self::default();
        let mut last: Option<&Arc<Scope>> = None;
        for (operation, scope) in operations.iter().zip(scopes) {
            if let Kind::Replace { .. } = &operation.kind {
                others.replaced.resize(tensors, false);
                if !last.is_some_and(|last| Arc::ptr_eq(last, scope)) {
                    scope.matched.iter().for_each(|id| others.replaced[id.position()] = true);
                }
                last = Some(scope);
            }
            if let Kind::Prune { granularity, ids } = &operation.kind
                && granularity.value == Granularity::AttentionHead
                && others.heads.len() < MAX_HEAD_PRUNES
            {
                let ids = ids.value.iter().map(|id| id.value).collect();
                others.heads.push((OperationId::new(operation.index), ids, scope));
            }
        }
        others
    }

    /// Whether some `replace` reaches a tensor.
    pub(super) fn replace(&self, id: TensorId) -> bool {
        self.replaced.get(id.position()).is_some_and(|&replaced| replaced)
    }

    /// Whether another operation zeroes (at least) the same heads in some of these tensors.
    pub(super) fn prune(&self, operation: &Operation, heads: &[u64], tensors: &[TensorId]) -> bool {
        let own = OperationId::new(operation.index);
        self.heads.iter().any(|(other, theirs, scope)| {
            *other != own
                && tensors.iter().any(|&id| scope.reaches(id))
                && heads.iter().all(|head| theirs.contains(head))
        })
    }
}
