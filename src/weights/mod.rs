//! What is in memory: [`WeightMap`], a checkpoint's tensors as MLX arrays, with a plan applied and in the dtype that
//! the [`Policy`] settles.
//!
//! ```text
//! files ──lazy──▶ WeightMap ──operate(plan)──▶ WeightMap ──a model takes tensors: cast, dequantize, read──▶ arrays
//! ```
//!
//! A tensor that the plan leaves alone is not read before the model takes it; one that it touches is computed by the
//! executor and handed over. A map is built whole or not at all. Nothing here knows of families.

mod kept;
mod matrix;
mod memory;
mod operate;
mod pages;
mod precision;
mod take;
mod text;

pub use kept::Kept;
pub use matrix::Matrix;
pub(crate) use memory::check_limit;
pub use memory::{peak_memory, total_memory};
pub use precision::{Holdings, Policy, Precision};

use std::collections::BTreeMap;

use crate::checkpoint::{Checkpoint, Key, Origin};
use crate::diagnostic::{Code, Diagnostic};
use crate::mlx::{self, Array, Dtype};

/// Bytes of weights that have been read, computed or converted, of all that will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// So many are done.
    pub done: u64,
    /// So many in all.
    pub total: u64,
    /// While the surgery is carried out: which of its tensors is being computed, counted from 1, and how many there are.
    pub operating: Option<(usize, usize)>,
}

/// A checkpoint's tensors, from which a model takes what it needs.
pub struct WeightMap<'p> {
    /// What has not been taken yet, and its bytes that still have to be counted as progress.
    tensors: BTreeMap<Key, (Array, u64)>,
    /// Tensors that are the same as another's (a tied head's), as long as no edit has parted them.
    ties: BTreeMap<Key, Key>,
    /// Names in the checkpoint, where tensors have taken others since.
    stored_as: BTreeMap<Key, Key>,
    /// Taken matrices that a tied module may ask for again, by module.
    shared: BTreeMap<String, Matrix>,
    policy: Policy,
    progress: Progress,
    /// Who hears of taken tensors, which are then computed at once; a trial only looks at shapes.
    listener: Option<&'p mut dyn FnMut(Progress)>,
    /// What other models of this checkpoint have taken.
    kept: Option<&'p mut Kept>,
}

impl WeightMap<'_> {
    /// The tensors of a checkpoint as they are stored; nothing is read but headers.
    ///
    /// # Errors
    /// What MLX says of a file.
    pub fn open(checkpoint: &Checkpoint) -> Result<Self, Diagnostic> {
        let mut files = Vec::with_capacity(checkpoint.weights.shards.len());
        for shard in &checkpoint.weights.shards {
            let arrays = mlx::load_safetensors(&shard.path).map_err(|error| {
                Diagnostic::new(Code::ModelUnreadable, format!("`{}`: {error}", shard.path.display()))
            })?;
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
            let array = array.filter(|array| same_shape(array, &info.shape)).ok_or_else(|| {
                let message = format!("`{key}` is not as its file's header had it");
                Diagnostic::new(Code::FileChanged, message).help("run again when nothing writes to the model")
            })?;
            let bytes = if ties.contains_key(key) { 0 } else { array.bytes() as u64 };
            tensors.insert(key.clone(), (array.clone(), bytes));
        }
        let total = tensors.values().map(|(_, bytes)| bytes).sum();
        let progress = Progress { done: 0, total, operating: None };
        Ok(Self {
            tensors,
            ties,
            stored_as: BTreeMap::new(),
            shared: BTreeMap::new(),
            policy: Policy::native(),
            progress,
            listener: None,
            kept: None,
        })
    }

    /// Whether every bf16 weight is finite in f16 too. Reads all of them.
    ///
    /// # Errors
    /// What MLX says.
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

fn same_shape(array: &Array, shape: &[usize]) -> bool {
    array.shape().len() == shape.len()
        && array.shape().iter().zip(shape).all(|(&a, &b)| usize::try_from(a) == Ok(b))
}

/// A failure of MLX on the way into memory.
pub(crate) fn broken(error: &mlx::Error) -> Diagnostic {
    Diagnostic::new(Code::MlxFailed, format!("MLX cannot load the weights: {error}"))
}
