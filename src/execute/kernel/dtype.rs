//! Float dtypes and their working precisions: F16 and BF16 are computed in f32, F32 in f64. Widening is exact; narrowing
//! rounds once, ties to even.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use super::bits::{Bits, Group, STRIP, load};
use super::simd::{Lanes, Simd, Work};
use crate::checkpoint::Dtype;

/// A strip's values in memory. Beyond a tensor's end they are 0.
pub(in crate::execute) type Values<W> = [W; STRIP];

/// A float dtype that tensors are edited in.
pub(in crate::execute) trait Float {
    /// One element's bits.
    type Bits: Bits;
    /// The precision that it is computed in.
    type Work: Work;
    /// Sixteen values in registers.
    type Lanes<M: Simd>: Lanes<Self::Work, Token = M>;
    const DTYPE: Dtype;
    /// The smallest value above 0.
    const MIN_POSITIVE: Self::Work;
    /// The bits of the smallest normal number.
    const MIN_NORMAL: Self::Bits;
    /// The bits of infinity.
    const INFINITY: Self::Bits;
    /// The bits that every computed NaN gets.
    const NAN: Self::Bits;
    /// Exact.
    fn widen<M: Simd>(token: M, bits: &Group<Self::Bits>) -> LanesOf<Self, M>;
    /// Rounds. The bits of a NaN are arbitrary unless it came from an input of this dtype.
    fn narrow<M: Simd>(token: M, values: LanesOf<Self, M>) -> Group<Self::Bits>;

    /// Rounds, and gives every NaN the same bits.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn narrow_any<M: Simd>(token: M, values: LanesOf<Self, M>) -> Group<Self::Bits> {
        let mut bits = Self::narrow(token, values);
        for (bits, value) in bits.iter_mut().zip(values.store()) {
            *bits = if value.is_nan() { Self::NAN } else { *bits };
        }
        bits
    }
}

/// Sixteen values of a dtype in registers.
pub(in crate::execute) type LanesOf<F, M> = <F as Float>::Lanes<M>;

/// IEEE half precision.
pub(in crate::execute) enum F16 {}
/// The upper half of an f32.
pub(in crate::execute) enum Bf16 {}
/// IEEE single precision.
pub(in crate::execute) enum F32 {}

impl Float for F16 {
    type Bits = u16;
    type Work = f32;
    type Lanes<M: Simd> = M::F32s;
    const DTYPE: Dtype = Dtype::F16;
    const MIN_POSITIVE: f32 = half::f16::MIN_POSITIVE_SUBNORMAL.to_f32_const();
    const MIN_NORMAL: u16 = 0x0400;
    const INFINITY: u16 = 0x7c00;
    const NAN: u16 = 0x7e00;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn widen<M: Simd>(token: M, bits: &Group<u16>) -> LanesOf<Self, M> {
        token.widen_f16(bits)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn narrow<M: Simd>(token: M, values: LanesOf<Self, M>) -> Group<u16> {
        token.narrow_f16(values)
    }
}

impl Float for Bf16 {
    type Bits = u16;
    type Work = f32;
    type Lanes<M: Simd> = M::Bf16s;
    const DTYPE: Dtype = Dtype::BF16;
    const MIN_POSITIVE: f32 = f32::from_bits(1 << 16);
    const MIN_NORMAL: u16 = 0x0080;
    const INFINITY: u16 = 0x7f80;
    const NAN: u16 = 0x7fc0;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn widen<M: Simd>(token: M, bits: &Group<u16>) -> LanesOf<Self, M> {
        token.widen_bf16(bits)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn narrow<M: Simd>(token: M, values: LanesOf<Self, M>) -> Group<u16> {
        token.narrow_bf16(values)
    }
}

impl Float for F32 {
    type Bits = u32;
    type Work = f64;
    type Lanes<M: Simd> = M::F64s;
    const DTYPE: Dtype = Dtype::F32;
    const MIN_POSITIVE: f64 = f32::from_bits(1) as f64;
    const MIN_NORMAL: u32 = 0x0080_0000;
    const INFINITY: u32 = 0x7f80_0000;
    const NAN: u32 = 0x7fc0_0000;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn widen<M: Simd>(token: M, bits: &Group<u32>) -> LanesOf<Self, M> {
        token.widen_f32(bits)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn narrow<M: Simd>(token: M, values: LanesOf<Self, M>) -> Group<u32> {
        token.narrow_f32(values)
    }
}

/// Decodes the bytes of any float dtype, at most a strip; exact. Missing elements become 0.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(in crate::execute) fn decode<M: Simd, W: Work>(
    token: M,
    dtype: Dtype,
    bytes: &[u8],
    values: &mut Values<W>,
) {
    match dtype {
        Dtype::BF16 | Dtype::F16 => {
            let mut bits = [0; STRIP];
            load(bytes, &mut bits);
            for (values, bits) in values.as_chunks_mut::<16>().0.iter_mut().zip(bits.as_chunks().0) {
                let wide = match dtype {
                    Dtype::F16 => token.widen_f16(bits).store(),
                    _ => token.widen_bf16(bits).store(),
                };
                for (value, wide) in values.iter_mut().zip(wide) {
                    *value = W::from_f32(wide);
                }
            }
        }
        Dtype::F32 => {
            let mut bits = [0; STRIP];
            load(bytes, &mut bits);
            for (value, bits) in values.iter_mut().zip(bits) {
                *value = W::from_f32(f32::from_bits(bits));
            }
        }
        other => unreachable!("the planner refuses arithmetic on {other:?}"),
    }
}

#[cfg(test)]
mod tests;
