//! [`CheckpointFacts`]: what the headers say about a checkpoint, as far as the dtype policy needs it.

use crate::checkpoint::{Checkpoint, Dtype, Origin, Packing, packing};

/// What the headers say about a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckpointFacts {
    /// `model_type` of the text model.
    pub model_type: String,
    /// Whether any weight is packed.
    pub quantized: bool,
    /// Whether any tensor is bf16.
    pub bf16: bool,
    /// Bytes of all weights in f32, packed weights dequantized.
    pub f32_bytes: u64,
}

impl CheckpointFacts {
    /// Reads them off the index.
    #[must_use]
    pub fn of(checkpoint: &Checkpoint) -> Self {
        let index = &checkpoint.weights.index;
        let mut facts =
            Self { model_type: checkpoint.config.text_model_type().to_owned(), ..Self::default() };
        for (id, (key, info)) in index.ids().zip(index.entries()) {
            let is_tied = matches!(info.origin, Origin::Tied(_));
            if is_tied || checkpoint.config.text_key(key).is_none() {
                continue;
            }
            let elements: u64 = info.shape.iter().map(|&n| n as u64).product();
            match info.dtype {
                Dtype::U32 if index.position(&format!("{}.scales", key.stem())).is_some() => {
                    facts.quantized = true;
                    let bits = match packing(index, &checkpoint.config, id) {
                        Packing::Affine(set) => set.format.map_or(4, |format| format.bits),
                        Packing::Foreign(mode) if mode == "mxfp8" => 8,
                        _ => 4,
                    };
                    facts.f32_bytes += elements * 32 / bits.max(1) * 4;
                }
                Dtype::F16 | Dtype::BF16 | Dtype::F32 => {
                    facts.bf16 |= info.dtype == Dtype::BF16;
                    if !matches!(key.suffix(), "scales" | "biases") {
                        facts.f32_bytes += elements * 4;
                    }
                }
                _ => {}
            }
        }
        facts
    }
}
