//! [`Matrix`]: a weight `[out, in]` as it is held in memory, dense or in affine codes.

use super::Policy;
use crate::mlx::{Array, Packing, Result};

/// A weight `[out, in]`, or those of several experts `[E, out, in]`. Cloning shares the memory: a tied head is a clone of the embedding.
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
    pub(super) fn dense(weight: Array) -> Result<Self> {
        let transposed = weight.transpose(if weight.shape().len() == 3 { &[0, 2, 1] } else { &[1, 0] })?;
        Ok(Self::Dense { weight, transposed })
    }

    /// The matrix in the dtype, and dequantized, as the policy says.
    pub(super) fn under(&self, policy: &Policy) -> Result<Self> {
        match self {
            Self::Dense { weight, .. } => Self::dense(policy.cast(weight)?),
            Self::Affine { codes, scales, biases, packing } => {
                let (scales, biases) = (policy.cast(scales)?, policy.cast(biases)?);
                if policy.unpacks() {
                    return Self::dense(codes.dequantize(&scales, &biases, *packing)?);
                }
                Ok(Self::Affine { codes: codes.clone(), scales, biases, packing: *packing })
            }
        }
    }

    /// Several matrices of the same input as one, row after row; `None` where they are packed differently.
    pub(super) fn stacked(parts: &[Self]) -> Result<Option<Self>> {
        let Some(first) = parts.first() else { return Ok(None) };
        match first {
            Self::Dense { weight: example, .. } => {
                let all = parts.iter().map(|part| match part {
                    Self::Dense { weight, .. } if weight.dtype() == example.dtype() => Some(weight),
                    _ => None,
                });
                let Some(all) = all.collect::<Option<Vec<&Array>>>() else { return Ok(None) };
                Ok(Some(Self::dense(Array::concatenate(&all, 0)?)?))
            }
            Self::Affine { scales: example, packing: wanted, .. } => {
                let mut members = [const { Vec::new() }; 3];
                for part in parts {
                    match part {
                        Self::Affine { codes, scales, biases, packing }
                            if packing == wanted && scales.dtype() == example.dtype() =>
                        {
                            for (list, array) in members.iter_mut().zip([codes, scales, biases]) {
                                list.push(array);
                            }
                        }
                        _ => return Ok(None),
                    }
                }
                let [codes, scales, biases] = members.map(|list| Array::concatenate(&list, 0));
                Ok(Some(Self::Affine { codes: codes?, scales: scales?, biases: biases?, packing: *wanted }))
            }
        }
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

    /// The chosen of several experts: x `[…, 1, 1, in]` or `[…, k, 1, in]` and their numbers u32 `[…, k]` →
    /// `[…, k, 1, out]`.
    pub(crate) fn apply_chosen(&self, x: &Array, chosen: &Array) -> Result<Array> {
        match self {
            Self::Dense { transposed, .. } => x.matmul_of(transposed, chosen),
            Self::Affine { codes, scales, biases, packing } => {
                x.quantized_matmul_of(codes, scales, biases, chosen, *packing)
            }
        }
    }

    /// The rows of `count` experts one after the other, as one matrix for each expert.
    pub(super) fn split(&self, count: i32) -> Result<Self> {
        let split = |array: &Array| array.reshape(&[count, array.dim(0) / count.max(1), array.dim(1)]);
        match self {
            Self::Dense { weight, .. } => Self::dense(split(weight)?),
            Self::Affine { codes, scales, biases, packing } => Ok(Self::Affine {
                codes: split(codes)?,
                scales: split(scales)?,
                biases: split(biases)?,
                packing: *packing,
            }),
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
    pub(super) fn arrays(&self) -> Vec<&Array> {
        match self {
            Self::Dense { weight, transposed } => vec![weight, transposed],
            Self::Affine { codes, scales, biases, .. } => vec![codes, scales, biases],
        }
    }
}
