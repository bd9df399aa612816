//! [`WeightMap`]: a checkpoint's tensors, from which a model takes what it needs.

use std::collections::BTreeMap;

use super::{Matrix, Policy, Progress, SharedWeights, WeightsError};
use crate::checkpoint::{Checkpoint, Key, Origin};
use crate::mlx::{self, Array, Dtype};

/// A checkpoint's tensors, from which a model takes what it needs.
pub(crate) struct WeightMap<'p> {
    /// Tensors that no model has taken yet, each with its bytes that progress does not count yet.
    pub(super) tensors: BTreeMap<Key, (Array, u64)>,
    /// Tensors that share another's memory (a tied head's), unless an edit breaks the tie.
    pub(super) ties: BTreeMap<Key, Key>,
    /// Names in the checkpoint of tensors that have been renamed.
    pub(super) stored_as: BTreeMap<Key, Key>,
    /// Taken matrices that a tied module may need again, by module.
    pub(super) tied: BTreeMap<String, Matrix>,
    pub(super) policy: Policy,
    pub(super) progress: Progress,
    /// Receives each taken tensor, which is then computed at once; `None` in a trial, which only looks at shapes.
    pub(super) listener: Option<&'p mut dyn FnMut(Progress)>,
    /// Tensors that another model of this checkpoint has taken.
    pub(super) shared: Option<&'p mut SharedWeights>,
}

impl WeightMap<'_> {
    /// The tensors of a checkpoint as they are stored. Only headers are read.
    ///
    /// # Errors
    /// A file that MLX cannot read, or that changed.
    pub(crate) fn open(checkpoint: &Checkpoint) -> Result<Self, WeightsError> {
        let mut files = Vec::with_capacity(checkpoint.weights.shards.len());
        for shard in &checkpoint.weights.shards {
            let arrays = mlx::load_safetensors(&shard.path)
                .map_err(|source| WeightsError::File { path: shard.path.clone(), source })?;
            files.push(arrays);
        }
        let index = &checkpoint.weights.index;
        let (mut tensors, mut ties) = (BTreeMap::new(), BTreeMap::new());
        for (key, info) in index.entries() {
            let (source, stored) = match &info.origin {
                Origin::Stored { .. } => (key, Some(info)),
                Origin::Tied(source) => {
                    ties.insert(key.clone(), source.clone());
                    (source, index.get(source.as_str()))
                }
            };
            let array = stored.and_then(|info| match info.origin {
                Origin::Stored { shard, .. } => files.get(shard)?.get(source.as_str()),
                Origin::Tied(_) => None,
            });
            let array = array
                .filter(|array| same_shape(array, &info.shape))
                .ok_or_else(|| WeightsError::Changed { key: key.clone() })?;
            let bytes = if ties.contains_key(key) { 0 } else { array.bytes() as u64 };
            tensors.insert(key.clone(), (array.clone(), bytes));
        }
        let total = tensors.values().map(|(_, bytes)| bytes).sum();
        let progress = Progress { done: 0, total, operating: None };
        Ok(Self {
            tensors,
            ties,
            stored_as: BTreeMap::new(),
            tied: BTreeMap::new(),
            policy: Policy::native(),
            progress,
            listener: None,
            shared: None,
        })
    }

    /// Whether every bf16 weight is finite in f16 too. Reads all of them.
    ///
    /// # Errors
    /// A failure of MLX.
    pub(crate) fn is_finite_in_f16(&self) -> mlx::Result<bool> {
        const LARGEST_F16: f32 = 65_504.0;
        for (array, _) in self.tensors.values().filter(|(array, _)| array.dtype() == Dtype::Bfloat16) {
            let largest = array.largest()?.to_f32()?;
            if !largest.iter().all(|&x| x <= LARGEST_F16) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

pub(super) fn same_shape(array: &Array, shape: &[usize]) -> bool {
    array.shape().len() == shape.len()
        && array.shape().iter().zip(shape).all(|(&a, &b)| usize::try_from(a) == Ok(b))
}
