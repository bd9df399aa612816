//! Dtypes and parameters in the working precision: f64 for F32, f32 for F16 and BF16.

use crate::checkpoint::{Dtype, is_dense_float, mlx_can_load};

/// What operations can do with tensors of a dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// F16, BF16 or F32: arithmetic is defined.
    Float,
    /// Codes, integers, booleans, bytes: copied, never computed with.
    Integer,
    /// A dtype that MLX cannot load.
    Unloadable,
}

impl Class {
    /// The class of a dtype.
    pub(super) fn of(dtype: Dtype) -> Self {
        match dtype {
            _ if is_dense_float(dtype) => Self::Float,
            _ if mlx_can_load(dtype) => Self::Integer,
            _ => Self::Unloadable,
        }
    }
}

/// A parameter rounded to the working precision of a tensor; `None` if it is not finite there.
pub(super) fn working(dtype: Dtype, parameter: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, reason = "rounding to the working precision is the point")]
    let value = if dtype == Dtype::F32 { parameter } else { f64::from(parameter as f32) };
    value.is_finite().then_some(value)
}

/// The name of a tensor's working precision.
pub(super) fn precision(dtype: Dtype) -> &'static str {
    if dtype == Dtype::F32 { "f64" } else { "f32" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_may_fit_f64_and_not_f32() {
        assert_eq!(working(Dtype::BF16, 1e39), None);
        assert_eq!(working(Dtype::F32, 1e39), Some(1e39));
        assert_eq!(working(Dtype::F16, 1.0 + 1e-12), Some(1.0));
    }
}
