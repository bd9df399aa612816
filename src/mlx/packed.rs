//! [`Packed`]: quantized weights, and operations on them as they are.
//!
//! `mlx-rs` supports only affine codes; the C interface has one set of functions for all modes.

use std::ffi::CStr;

use super::{Array, Dtype, Result, op};

/// How codes encode numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// scale · code + bias.
    Affine,
    /// 4-bit floats with an exponent for each 32.
    Mxfp4,
    /// 8-bit floats with an exponent for each 32.
    Mxfp8,
    /// 4-bit floats with an 8-bit float for each 16.
    Nvfp4,
}

/// Mode, bits and group size of codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packing {
    /// How codes encode numbers.
    pub mode: Mode,
    /// Bits per code: 2, 3, 4, 5, 6 or 8.
    pub bits: i32,
    /// Elements per scale: 32, 64 or 128; 16 in `nvfp4`.
    pub group_size: i32,
}

/// A weight `[…, out, in]` in codes.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    /// u32 `[…, out, in · bits / 32]`.
    pub codes: Array,
    /// `[…, out, in / group_size]`: floats in affine sets, else u8.
    pub scales: Array,
    /// As scales; only in affine sets.
    pub biases: Option<Array>,
    /// Mode, bits and group size.
    pub packing: Packing,
}

impl Mode {
    fn name(self) -> &'static CStr {
        match self {
            Self::Affine => c"affine",
            Self::Mxfp4 => c"mxfp4",
            Self::Mxfp8 => c"mxfp8",
            Self::Nvfp4 => c"nvfp4",
        }
    }

    /// The mode without biases with these bits and this group size.
    #[must_use]
    pub(crate) fn of_floats(bits: i32, group_size: i32) -> Option<Self> {
        match (bits, group_size) {
            (4, 32) => Some(Self::Mxfp4),
            (8, 32) => Some(Self::Mxfp8),
            (4, 16) => Some(Self::Nvfp4),
            _ => None,
        }
    }
}

/// An optional integer with a value.
fn given(value: i32) -> mlx_sys::mlx_optional_int {
    mlx_sys::mlx_optional_int { value, has_value: true }
}

impl Packed {
    /// Dequantizes: affine sets to the dtype of the scales, others to this one.
    pub(crate) fn dequantize(&self, dtype: Dtype) -> Result<Array> {
        let affine = self.packing.mode == Mode::Affine;
        let dtype = mlx_sys::mlx_optional_dtype { value: dtype.into(), has_value: !affine };
        self.with(|biases, none, bits, group_size, out, stream| {
            // SAFETY: live handles, or empty ones where the function takes none; the mode's name is static.
            unsafe {
                mlx_sys::mlx_dequantize(
                    out,
                    self.codes.0.as_ptr(),
                    self.scales.0.as_ptr(),
                    biases,
                    group_size,
                    bits,
                    self.packing.mode.name().as_ptr(),
                    none,
                    dtype,
                    stream,
                )
            }
        })
    }

    /// x `[…, in]` → x · Wᵀ `[…, out]`.
    pub(crate) fn matmul(&self, x: &Array) -> Result<Array> {
        self.with(|biases, _, bits, group_size, out, stream| {
            // SAFETY: live handles, or an empty one where the function takes none; the mode's name is static.
            unsafe {
                mlx_sys::mlx_quantized_matmul(
                    out,
                    x.0.as_ptr(),
                    self.codes.0.as_ptr(),
                    self.scales.0.as_ptr(),
                    biases,
                    true,
                    group_size,
                    bits,
                    self.packing.mode.name().as_ptr(),
                    stream,
                )
            }
        })
    }

    /// The product with chosen matrices, as [`Array::matmul_of`].
    pub(crate) fn matmul_of(&self, x: &Array, indices: &Array) -> Result<Array> {
        self.with(|biases, none, bits, group_size, out, stream| {
            // SAFETY: live handles, or empty ones where the function takes none; the mode's name is static.
            unsafe {
                mlx_sys::mlx_gather_qmm(
                    out,
                    x.0.as_ptr(),
                    self.codes.0.as_ptr(),
                    self.scales.0.as_ptr(),
                    biases,
                    none,
                    indices.0.as_ptr(),
                    true,
                    group_size,
                    bits,
                    self.packing.mode.name().as_ptr(),
                    false,
                    stream,
                )
            }
        })
    }

    /// Applies a function to every member.
    pub(crate) fn map(&self, change: impl Fn(&Array) -> Result<Array>) -> Result<Self> {
        Ok(Self {
            codes: change(&self.codes)?,
            scales: change(&self.scales)?,
            biases: self.biases.as_ref().map(&change).transpose()?,
            packing: self.packing,
        })
    }

    /// All arrays it holds.
    pub(crate) fn arrays(&self) -> Vec<&Array> {
        [&self.codes, &self.scales].into_iter().chain(&self.biases).collect()
    }

    /// Makes a call with the biases (or an empty handle), an empty handle, bits and group size.
    fn with(
        &self,
        call: impl FnOnce(
            mlx_sys::mlx_array,
            mlx_sys::mlx_array,
            mlx_sys::mlx_optional_int,
            mlx_sys::mlx_optional_int,
            *mut mlx_sys::mlx_array,
            mlx_sys::mlx_stream,
        ) -> std::ffi::c_int,
    ) -> Result<Array> {
        // SAFETY: makes an empty handle, which means an absent argument and holds no memory.
        let none = unsafe { mlx_sys::mlx_array_new() };
        let biases = self.biases.as_ref().map_or(none, |biases| biases.0.as_ptr());
        let Packing { bits, group_size, .. } = self.packing;
        op(|out, stream| call(biases, none, given(bits), given(group_size), out, stream))
    }
}

#[cfg(test)]
impl Packed {
    /// Packs a weight `[…, out, in]`.
    pub(crate) fn quantize(weight: &Array, packing: Packing) -> Self {
        // SAFETY: makes an empty list.
        let mut list = unsafe { mlx_sys::mlx_vector_array_new() };
        let stream = super::Stream::thread_local_or_default();
        let (bits, group_size) = (given(packing.bits), given(packing.group_size));
        // SAFETY: live handles and a static name; the list is filled with fresh arrays.
        let members: Vec<Array> = unsafe {
            let none = mlx_sys::mlx_array_new();
            let mode = packing.mode.name().as_ptr();
            let status = mlx_sys::mlx_quantize(
                &raw mut list,
                weight.0.as_ptr(),
                group_size,
                bits,
                mode,
                none,
                stream.as_ptr(),
            );
            assert_eq!(status, 0);
            let member = |at| {
                let mut out = mlx_sys::mlx_array_new();
                assert_eq!(mlx_sys::mlx_vector_array_get(&raw mut out, list, at), 0);
                Array(mlx_rs::Array::from_ptr(out))
            };
            let members = (0..mlx_sys::mlx_vector_array_size(list)).map(member).collect();
            mlx_sys::mlx_vector_array_free(list);
            members
        };
        let mut members = members.into_iter();
        let (codes, scales) = (members.next().unwrap(), members.next().unwrap());
        Self { codes, scales, biases: members.next(), packing }
    }
}
