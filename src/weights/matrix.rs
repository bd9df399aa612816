//! [`Matrix`]: a weight `[out, in]` as it is held in memory, dense or in affine codes.

use crate::mlx::{Array, Packing, Result};

/// A weight `[out, in]`. Cloning shares the memory: a tied head is a clone of the embedding.
#[derive(Debug, Clone)]
pub enum Matrix {
    /// Plain numbers.
    Dense {
        /// `[out, in]`.
        weight: Array,
        /// The same memory seen as `[in, out]`, which is how a matrix product wants it.
        transposed: Array,
    },
    /// w = scale · code + bias.
    Affine {
        /// u32 `[out, in · bits / 32]`.
        codes: Array,
        /// `[out, in / group_size]`.
        scales: Array,
        /// As scales.
        biases: Array,
        /// Bits and group size.
        packing: Packing,
    },
}

impl Matrix {
    /// A dense matrix of a `[out, in]` array.
    pub(crate) fn dense(weight: Array) -> Result<Self> {
        let transposed = weight.transpose(&[1, 0])?;
        Ok(Self::Dense { weight, transposed })
    }

    /// x `[…, in]` → x · Wᵀ `[…, out]`.
    pub(crate) fn apply(&self, x: &Array) -> Result<Array> {
        match self {
            Self::Dense { transposed, .. } => x.matmul(transposed),
            Self::Affine { codes, scales, biases, packing } => {
                x.quantized_matmul(codes, scales, biases, *packing)
            }
        }
    }

    /// Rows by index: u32 `[…]` → `[…, in]`.
    pub(crate) fn rows(&self, indices: &Array) -> Result<Array> {
        match self {
            Self::Dense { weight, .. } => weight.rows(indices),
            Self::Affine { codes, scales, biases, packing } => {
                codes.rows(indices)?.dequantize(&scales.rows(indices)?, &biases.rows(indices)?, *packing)
            }
        }
    }

    /// Everything it holds.
    pub(crate) fn arrays(&self) -> Vec<&Array> {
        match self {
            Self::Dense { weight, transposed } => vec![weight, transposed],
            Self::Affine { codes, scales, biases, .. } => vec![codes, scales, biases],
        }
    }
}
