//! [`AffineSet`]: codes, scales and biases as one thing.

use std::collections::BTreeMap;

use super::{ModelConfig, TensorIndex};

/// The quantization section of `config.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quantization {
    /// `affine` when absent; `mxfp4`, `mxfp8`, `nvfp4`, or a foreign method's name (`awq`, `gptq`, `fp8`, …).
    pub mode: Option<String>,
    /// Default bits.
    pub bits: Option<u64>,
    /// Default group size.
    pub group_size: Option<u64>,
    /// Per module path (without `.weight`): `None` is `false`, not quantized.
    pub overrides: BTreeMap<String, Option<ModuleQuantization>>,
}

/// One module's own quantization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleQuantization {
    /// Mode, when it differs.
    pub mode: Option<String>,
    /// Bits.
    pub bits: Option<u64>,
    /// Group size.
    pub group_size: Option<u64>,
}

/// An affine-quantized module: `w = scale · code + bias`. Members are positions in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AffineSet {
    /// The module's path, `P` of `P.weight`.
    pub module: String,
    /// `P.weight`, U32 `[…, out, in·bits/32]`.
    pub codes: usize,
    /// `P.scales`, float `[…, out, in/group_size]`.
    pub scales: usize,
    /// `P.biases`, as scales.
    pub biases: usize,
    /// Bits and group size, where config or shapes settle them.
    pub format: Option<AffineFormat>,
}

/// Bits (2, 3, 4, 5, 6, 8) and group size (32, 64, 128).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffineFormat {
    /// Bits a code.
    pub bits: u64,
    /// Elements a group.
    pub group_size: u64,
}

/// What a module's weight is, by its neighbours in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packing {
    /// A plain tensor.
    Dense,
    /// A complete, consistent affine set.
    Affine(AffineSet),
    /// Packed, but members are missing or disagree: why.
    Incomplete(String),
    /// Packed by something other than affine: its name (`mxfp4`, `AWQ`, `FP8 block scales`, …).
    Foreign(String),
}

/// How the module that `position` belongs to is packed (any member of a set stands for the set).
#[must_use]
pub fn packing(index: &TensorIndex, config: &ModelConfig, position: usize) -> Packing {
    todo!()
}
