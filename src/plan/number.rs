//! Dtypes and parameters as the arithmetic of surgery sees them.

use crate::checkpoint::Dtype;

/// What can be done with a tensor of some dtype.
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
            Dtype::F16 | Dtype::BF16 | Dtype::F32 => Self::Float,
            Dtype::F64
            | Dtype::F8_E5M2
            | Dtype::F8_E4M3FNUZ
            | Dtype::F8_E5M2FNUZ
            | Dtype::F4
            | Dtype::F6_E2M3
            | Dtype::F6_E3M2 => Self::Unloadable,
            _ => Self::Integer,
        }
    }
}

/// A parameter as the working precision of a tensor has it: f64 for F32, else f32. `None` where it is not finite.
pub(super) fn working(dtype: Dtype, parameter: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, reason = "rounding to the working precision is the point")]
    let value = if dtype == Dtype::F32 { parameter } else { f64::from(parameter as f32) };
    value.is_finite().then_some(value)
}

/// The name of a tensor's working precision.
pub(super) fn precision(dtype: Dtype) -> &'static str {
    if dtype == Dtype::F32 { "f64" } else { "f32" }
}

/// The size of a tensor's data in bytes.
pub(super) fn bytes(dtype: Dtype, shape: &[usize]) -> u64 {
    let elements = shape.iter().fold(1_u64, |n, &d| n.saturating_mul(d as u64));
    elements.saturating_mul(dtype.bitsize() as u64).div_ceil(8)
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

    #[test]
    fn sizes_are_in_bytes() {
        assert_eq!(bytes(Dtype::BF16, &[3, 5]), 30);
        assert_eq!(bytes(Dtype::F32, &[]), 4);
        assert_eq!(bytes(Dtype::F32, &[0, 7]), 0);
    }
}
