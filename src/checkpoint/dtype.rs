//! Properties of element types.

use super::Dtype;

/// Whether surgery can compute with this type: F16, BF16 or F32.
#[must_use]
pub(crate) fn is_dense_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32)
}

/// Whether MLX can load this type. Headers may contain others, but not for a tensor that is used.
#[must_use]
pub(crate) fn mlx_can_load(dtype: Dtype) -> bool {
    matches!(
        dtype,
        Dtype::BOOL
            | Dtype::U8
            | Dtype::I8
            | Dtype::F8_E4M3
            | Dtype::F8_E8M0
            | Dtype::I16
            | Dtype::U16
            | Dtype::F16
            | Dtype::BF16
            | Dtype::I32
            | Dtype::U32
            | Dtype::F32
            | Dtype::C64
            | Dtype::I64
            | Dtype::U64
    )
}

/// Size of a tensor in bytes; `None` on overflow, or if it does not fill whole bytes (F4, F6).
#[must_use]
pub fn byte_length(dtype: Dtype, shape: &[usize]) -> Option<u64> {
    let elements = shape.iter().try_fold(1_usize, |product, &entry| product.checked_mul(entry))?;
    let bits = elements.checked_mul(dtype.bitsize())?;
    (bits % 8 == 0).then_some((bits / 8) as u64)
}
