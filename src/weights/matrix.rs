//! [`Matrix`]: a weight `[out, in]` in memory, dense or packed.

use super::Policy;
use crate::mlx::{Array, Packed, Result};

/// A weight `[out, in]`, or the weights of several experts `[E, out, in]`. Cloning shares the memory: a tied head is a
/// clone of the embedding.
#[derive(Debug, Clone)]
pub(crate) enum Matrix {
    /// Floats.
    Dense {
        /// `[out, in]`.
        weight: Array,
        /// The same memory as `[in, out]`, for matrix products.
        transposed: Array,
    },
    /// Packed codes.
    Packed {
        /// Codes, scales and biases.
        packed: Packed,
        /// Dtype of dequantized rows where the scales have none (modes of small floats).
        dtype: crate::mlx::Dtype,
    },
}

impl Matrix {
    /// A dense matrix of a `[out, in]` array.
    pub(super) fn dense(weight: Array) -> Result<Self> {
        let transposed = weight.transpose(if weight.shape().len() == 3 { &[0, 2, 1] } else { &[1, 0] })?;
        Ok(Self::Dense { weight, transposed })
    }

    /// A packed matrix.
    pub(super) fn packed(packed: Packed) -> Self {
        Self::Packed { packed, dtype: Policy::native().float() }
    }

    /// The matrix cast and dequantized as the policy decides.
    pub(super) fn under(&self, policy: &Policy) -> Result<Self> {
        match self {
            Self::Dense { weight, .. } => Self::dense(policy.cast(weight)?),
            Self::Packed { packed, .. } => {
                let packed = packed.map(|member| policy.cast(member))?;
                if policy.unpacks() {
                    return Self::dense(packed.dequantize(policy.float())?);
                }
                Ok(Self::Packed { packed, dtype: policy.float() })
            }
        }
    }

    /// Stacks the rows of several matrices with the same input; `None` if they are packed differently.
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
            Self::Packed { packed: example, .. } => {
                let all = parts.iter().map(|part| match part {
                    Self::Packed { packed, .. }
                        if packed.packing == example.packing
                            && packed.scales.dtype() == example.scales.dtype() =>
                    {
                        Some(packed)
                    }
                    _ => None,
                });
                let Some(all) = all.collect::<Option<Vec<&Packed>>>() else { return Ok(None) };
                let members = |of: fn(&Packed) -> Option<&Array>| {
                    let members: Vec<&Array> = all.iter().filter_map(|packed| of(packed)).collect();
                    Array::concatenate(&members, 0)
                };
                let biases = example.biases.as_ref().map(|_| members(|packed| packed.biases.as_ref()));
                Ok(Some(Self::packed(Packed {
                    codes: members(|packed| Some(&packed.codes))?,
                    scales: members(|packed| Some(&packed.scales))?,
                    biases: biases.transpose()?,
                    packing: example.packing,
                })))
            }
        }
    }

    /// x `[…, in]` → x · Wᵀ `[…, out]`.
    pub(crate) fn apply(&self, x: &Array) -> Result<Array> {
        match self {
            Self::Dense { transposed, .. } => x.matmul(transposed),
            Self::Packed { packed, .. } => packed.matmul(x),
        }
    }

    /// Applies the chosen experts: x `[…, 1, 1, in]` or `[…, k, 1, in]` and expert numbers u32 `[…, k]` →
    /// `[…, k, 1, out]`.
    pub(crate) fn apply_chosen(&self, x: &Array, chosen: &Array) -> Result<Array> {
        match self {
            Self::Dense { transposed, .. } => x.matmul_of(transposed, chosen),
            Self::Packed { packed, .. } => packed.matmul_of(x, chosen),
        }
    }

    /// Splits the stacked rows of `count` experts into one matrix for each.
    pub(super) fn split(&self, count: i32) -> Result<Self> {
        let split = |array: &Array| array.reshape(&[count, array.dim(0) / count.max(1), array.dim(1)]);
        match self {
            Self::Dense { weight, .. } => Self::dense(split(weight)?),
            Self::Packed { packed, .. } => Ok(Self::packed(packed.map(split)?)),
        }
    }

    /// Rows by index: u32 `[…]` → `[…, in]`.
    pub(crate) fn rows(&self, indices: &Array) -> Result<Array> {
        match self {
            Self::Dense { weight, .. } => weight.rows(indices),
            Self::Packed { packed, dtype } => packed.map(|member| member.rows(indices))?.dequantize(*dtype),
        }
    }

    /// All arrays it holds.
    pub(super) fn arrays(&self) -> Vec<&Array> {
        match self {
            Self::Dense { weight, transposed } => vec![weight, transposed],
            Self::Packed { packed, .. } => packed.arrays(),
        }
    }
}
