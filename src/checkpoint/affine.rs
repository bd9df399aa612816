//! [`AffineSet`]: codes, scales and biases as one thing; bits and group size checked against shapes and config.

use super::{AffineFormat, Key, ModelConfig, Role, TensorId, TensorInfo, is_dense_float, is_other_tower};

/// An affine-quantized module: `w = scale · code + bias`. Members are positions in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AffineSet {
    /// The module's path, `P` of `P.weight`.
    pub module: String,
    /// `P.weight`, U32 `[…, out, in·bits/32]`.
    pub codes: TensorId,
    /// `P.scales`, float `[…, out, in/group_size]`.
    pub scales: TensorId,
    /// `P.biases`, as scales.
    pub biases: TensorId,
    /// Bits and group size, where config or shapes determine them.
    pub format: Option<AffineFormat>,
}

/// Every affine format of MLX.
const FORMATS: [AffineFormat; 18] = {
    let (bits, groups) = ([2, 3, 4, 5, 6, 8], [32, 64, 128]);
    let mut formats = [AffineFormat { bits: 0, group_size: 0 }; 18];
    let mut at = 0;
    while at < 18 {
        formats[at] = AffineFormat { bits: bits[at / 3], group_size: groups[at % 3] };
        at += 1;
    }
    formats
};

/// Checks the members' shapes against each other; returns bits · group size, which is all that shapes determine.
pub(super) fn product(codes: &TensorInfo, scales: &TensorInfo, biases: &TensorInfo) -> Result<u64, String> {
    if !is_dense_float(scales.dtype) {
        return Err(format!("has `.scales` of {}, which are not float", scales.dtype));
    }
    if (scales.dtype, &scales.shape) != (biases.dtype, &biases.shape) {
        let [s, b] = [scales, biases].map(|info| format!("{} {:?}", info.dtype, info.shape));
        return Err(format!("has `.scales` {s} but `.biases` {b}"));
    }
    let disagree =
        || format!("has `.weight` {:?}, to which `.scales` {:?} do not fit", codes.shape, scales.shape);
    let (Some((words, rows)), Some((groups, scale_rows))) =
        (codes.shape.split_last(), scales.shape.split_last())
    else {
        return Err(disagree());
    };
    if rows.is_empty() || rows != scale_rows || *groups == 0 {
        return Err(disagree());
    }
    let bits = *words as u64 * 32;
    let product = bits / *groups as u64;
    let known = bits.is_multiple_of(*groups as u64)
        && FORMATS.iter().any(|format| format.bits * format.group_size == product);
    if known { Ok(product) } else { Err(disagree()) }
}

/// Bits and group size of the set that `key` belongs to: those of config.json (`said`) if the shapes and the number of
/// inputs allow them; else the only ones that these allow, if there are such.
pub(super) fn settle(
    product: u64,
    groups: u64,
    said: Option<AffineFormat>,
    key: &Key,
    config: &ModelConfig,
) -> Option<AffineFormat> {
    let possible: Vec<AffineFormat> =
        FORMATS.iter().copied().filter(|format| format.bits * format.group_size == product).collect();
    let known = known_inputs(key, config);
    let fits = |format: &AffineFormat| known.contains(&(groups * format.group_size));
    match (said.filter(|said| possible.contains(said)), &*possible) {
        (Some(said), _) if known.is_empty() || fits(&said) || !possible.iter().any(fits) => Some(said),
        (_, [only]) => Some(*only),
        _ => {
            let mut fitting = possible.iter().copied().filter(fits);
            fitting.next().filter(|_| fitting.next().is_none())
        }
    }
}

/// The numbers of inputs that a module of this role can have according to config.json; empty if that is unknown.
fn known_inputs(key: &Key, config: &ModelConfig) -> Vec<u64> {
    if is_other_tower(key) {
        return Vec::new();
    }
    let inputs: Vec<Option<u64>> = match Role::of(key) {
        Role::Query
        | Role::KeyProjection
        | Role::Value
        | Role::FusedQkv
        | Role::Gate
        | Role::Up
        | Role::FusedGateUp
        | Role::Embedding
        | Role::Head
        | Role::Router => vec![config.hidden_size],
        Role::Output => match (config.heads, config.head_dim) {
            (Some(heads), Some(head_dim)) => vec![heads.checked_mul(head_dim)],
            _ => vec![config.hidden_size],
        },
        Role::Down => vec![
            config.intermediate_size,
            config.number("moe_intermediate_size"),
            config.number("shared_expert_intermediate_size"),
        ],
        Role::QueryNorm | Role::Norm | Role::Other => Vec::new(),
    };
    inputs.into_iter().flatten().collect()
}
