//! [`SharedWeights`]: tensors that two models of one checkpoint share, so that both cost little more memory than one.

use std::collections::{BTreeMap, BTreeSet};

use super::Matrix;
use crate::checkpoint::Key;
use crate::mlx::Array;
use crate::plan::Plan;

/// Tensors that a model has taken and that no edit changes, evaluated in memory.
#[derive(Debug, Default)]
pub(crate) struct SharedWeights {
    /// Names in the checkpoint of tensors that the plan edits.
    edited: BTreeSet<Key>,
    vectors: BTreeMap<String, Array>,
    /// By the modules that each matrix is made of.
    matrices: BTreeMap<Vec<String>, Matrix>,
}

impl SharedWeights {
    /// Nothing yet, for a checkpoint that this plan edits.
    #[must_use]
    pub(crate) fn beside(plan: &Plan) -> Self {
        let keys = plan.programs().iter().flat_map(|program| [Some(program.key()), program.shared_with()]);
        Self { edited: keys.flatten().cloned().collect(), ..Self::default() }
    }

    pub(super) fn vector(&self, key: &str) -> Option<Array> {
        self.vectors.get(key).cloned()
    }

    /// Keeps a vector that the checkpoint stores as `stored`.
    pub(super) fn keep_vector(&mut self, key: &str, stored: &str, array: &Array) {
        if !self.edited.contains(&Key::from(stored)) {
            self.vectors.insert(key.to_owned(), array.clone());
        }
    }

    pub(super) fn matrix(&self, modules: &[String]) -> Option<Matrix> {
        self.matrices.get(modules).cloned()
    }

    /// Keeps a matrix made of tensors that the checkpoint stores under these names. Names without a tensor do not matter.
    pub(super) fn keep_matrix(&mut self, modules: &[String], stored: &[Key], matrix: &Matrix) {
        if stored.iter().all(|key| !self.edited.contains(key)) {
            self.matrices.insert(modules.to_vec(), matrix.clone());
        }
    }
}
