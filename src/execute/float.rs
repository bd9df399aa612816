//! Stored floats and working precision: F16 and BF16 are worked on in f32, F32 in f64. Decoding is exact; encoding
//! rounds once, ties to even, and gives every NaN the same bits.
//!
//! All loops are over slices without a branch in them, so that the compiler can vectorise them.

use std::ops::{Add, Mul, Sub};

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use crate::checkpoint::Dtype;

/// Elements that are worked on at a time, in arrays that stay in a first-level cache. Divides the tile.
pub(super) const STRIP: usize = 1024;

/// A working precision.
pub(super) trait Work:
    Copy + PartialEq + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    /// Exact.
    fn from_f32(value: f32) -> Self;
    /// Rounded.
    fn from_f64(value: f64) -> Self;
    /// Exact.
    fn to_f64(self) -> f64;
    fn abs(self) -> Self;
    fn is_finite(self) -> bool;
}

impl Work for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    #[inline]
    fn from_f32(value: f32) -> Self {
        value
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "parameters enter in working precision")]
    fn from_f64(value: f64) -> Self {
        value as Self
    }

    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    fn abs(self) -> Self {
        self.abs()
    }

    #[inline]
    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

impl Work for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    #[inline]
    fn from_f32(value: f32) -> Self {
        Self::from(value)
    }

    #[inline]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline]
    fn abs(self) -> Self {
        self.abs()
    }

    #[inline]
    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

/// A float dtype as a base tensor has it.
pub(super) trait Stored {
    /// One element's bits.
    type Bits: Copy + Eq + Default;
    /// What it is worked on in.
    type Work: Work;
    const BYTES: usize;
    /// The least magnitude that does not encode to a finite number.
    const LIMIT: Self::Work;
    /// The least normal number.
    const NORMAL: Self::Work;
    fn load(bytes: &[u8], bits: &mut [Self::Bits]);
    fn store(bits: &[Self::Bits], bytes: &mut [u8]);
    fn decode(bits: &[Self::Bits], values: &mut [Self::Work]);
    fn encode(values: &[Self::Work], bits: &mut [Self::Bits]);
}

/// F16.
pub(super) enum Half {}
/// BF16.
pub(super) enum Brain {}
/// F32.
pub(super) enum Single {}

impl Stored for Half {
    type Bits = u16;
    type Work = f32;
    const BYTES: usize = 2;
    // Halfway between the largest f16, 65504, and the next power of two; the tie goes up.
    const LIMIT: f32 = 65520.0;
    const NORMAL: f32 = f16::MIN_POSITIVE.to_f32_const();

    #[inline]
    fn load(bytes: &[u8], bits: &mut [u16]) {
        load_u16(bytes, bits);
    }

    #[inline]
    fn store(bits: &[u16], bytes: &mut [u8]) {
        store_u16(bits, bytes);
    }

    #[inline]
    fn decode(bits: &[u16], values: &mut [f32]) {
        bits.reinterpret_cast::<f16>().convert_to_f32_slice(values);
    }

    #[inline]
    fn encode(values: &[f32], bits: &mut [u16]) {
        bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(values);
        for bits in bits {
            *bits = if *bits & 0x7fff > 0x7c00 { 0x7e00 } else { *bits };
        }
    }
}

impl Stored for Brain {
    type Bits = u16;
    type Work = f32;
    const BYTES: usize = 2;
    // Halfway between the largest bf16 and the next power of two; the tie goes up.
    const LIMIT: f32 = f32::from_bits(0x7f7f_8000);
    const NORMAL: f32 = f32::MIN_POSITIVE;

    #[inline]
    fn load(bytes: &[u8], bits: &mut [u16]) {
        load_u16(bytes, bits);
    }

    #[inline]
    fn store(bits: &[u16], bytes: &mut [u8]) {
        store_u16(bits, bytes);
    }

    #[inline]
    fn decode(bits: &[u16], values: &mut [f32]) {
        for (value, bits) in values.iter_mut().zip(bits) {
            *value = f32::from_bits(u32::from(*bits) << 16);
        }
    }

    #[inline]
    fn encode(values: &[f32], bits: &mut [u16]) {
        for (bits, value) in bits.iter_mut().zip(values) {
            let wide = value.to_bits();
            // Adding just under half a unit, and a little more when the kept part is odd, rounds ties to even.
            let rounded = wide.wrapping_add(0x7fff + (wide >> 16 & 1)) >> 16;
            let kept = if wide & 0x7fff_ffff > 0x7f80_0000 { 0x7fc0 } else { rounded };
            *bits = (kept & 0xffff) as u16;
        }
    }
}

impl Stored for Single {
    type Bits = u32;
    type Work = f64;
    const BYTES: usize = 4;
    // Halfway between the largest f32 and the next power of two; the tie goes up.
    const LIMIT: f64 = 340_282_356_779_733_661_637_539_395_458_142_568_448.0;
    const NORMAL: f64 = f32::MIN_POSITIVE as f64;

    #[inline]
    fn load(bytes: &[u8], bits: &mut [u32]) {
        for (bits, bytes) in bits.iter_mut().zip(bytes.as_chunks().0) {
            *bits = u32::from_le_bytes(*bytes);
        }
    }

    #[inline]
    fn store(bits: &[u32], bytes: &mut [u8]) {
        for (bits, bytes) in bits.iter().zip(bytes.as_chunks_mut().0) {
            *bytes = bits.to_le_bytes();
        }
    }

    #[inline]
    fn decode(bits: &[u32], values: &mut [f64]) {
        for (value, bits) in values.iter_mut().zip(bits) {
            *value = f64::from(f32::from_bits(*bits));
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
    fn encode(values: &[f64], bits: &mut [u32]) {
        for (bits, value) in bits.iter_mut().zip(values) {
            let narrow = (*value as f32).to_bits();
            *bits = if narrow & 0x7fff_ffff > 0x7f80_0000 { 0x7fc0_0000 } else { narrow };
        }
    }
}

/// Decodes a donor's bytes, at most [`STRIP`] elements; exact for each float dtype.
#[inline]
pub(super) fn decode<W: Work>(dtype: Dtype, bytes: &[u8], values: &mut [W]) {
    match dtype {
        Dtype::BF16 => {
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                *value = W::from_f32(f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16));
            }
        }
        Dtype::F16 => {
            let mut bits = [0; STRIP];
            let mut wide = [0.0; STRIP];
            let n = values.len();
            load_u16(bytes, &mut bits[..n]);
            Half::decode(&bits[..n], &mut wide[..n]);
            for (value, wide) in values.iter_mut().zip(wide) {
                *value = W::from_f32(wide);
            }
        }
        Dtype::F32 => {
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                *value = W::from_f32(f32::from_le_bytes(*bytes));
            }
        }
        other => unreachable!("the planner lets no arithmetic on {other:?} through"),
    }
}

#[inline]
fn load_u16(bytes: &[u8], bits: &mut [u16]) {
    for (bits, bytes) in bits.iter_mut().zip(bytes.as_chunks().0) {
        *bits = u16::from_le_bytes(*bytes);
    }
}

#[inline]
fn store_u16(bits: &[u16], bytes: &mut [u8]) {
    for (bits, bytes) in bits.iter().zip(bytes.as_chunks_mut().0) {
        *bytes = bits.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bit pattern decodes and encodes to itself, but for NaNs, which all become one.
    fn check_round_trip<S: Stored<Bits = u16, Work = f32>>(infinity: u16, nan: u16) {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let mut values = vec![0.0; all.len()];
        let mut back = vec![0; all.len()];
        S::decode(&all, &mut values);
        S::encode(&values, &mut back);
        for (bits, back) in all.iter().zip(&back) {
            let expected = if bits & 0x7fff > infinity { nan } else { *bits };
            assert_eq!(*back, expected, "{bits:#x}");
        }
    }

    #[test]
    fn every_half_survives_the_way_there_and_back() {
        check_round_trip::<Half>(0x7c00, 0x7e00);
        check_round_trip::<Brain>(0x7f80, 0x7fc0);
    }

    #[track_caller]
    fn check<S: Stored>(value: S::Work, expected: S::Bits)
    where
        S::Bits: std::fmt::LowerHex + std::fmt::Debug,
    {
        let mut bits = [S::Bits::default()];
        S::encode(&[value], &mut bits);
        assert_eq!(bits[0], expected, "{:#x} is not {expected:#x}", bits[0]);
    }

    #[test]
    fn ties_go_to_even() {
        check::<Brain>(f32::from_bits(0x3f80_8000), 0x3f80);
        check::<Brain>(f32::from_bits(0x3f81_8000), 0x3f82);
        check::<Brain>(f32::from_bits(0x3f80_8001), 0x3f81);
        check::<Half>(1.0 + 1.0 / 2048.0, 0x3c00);
        check::<Half>(1.0 + 3.0 / 2048.0, 0x3c02);
        check::<Single>(1.0 + 2f64.powi(-24), 0x3f80_0000);
        check::<Single>(1.0 + 3.0 * 2f64.powi(-24), 0x3f80_0002);
    }

    #[test]
    fn the_limit_is_the_first_value_that_becomes_infinite() {
        check::<Half>(65520.0, 0x7c00);
        check::<Half>(65520f32.next_down(), 0x7bff);
        check::<Brain>(Brain::LIMIT, 0x7f80);
        check::<Brain>(Brain::LIMIT.next_down(), 0x7f7f);
        check::<Single>(Single::LIMIT, 0x7f80_0000);
        check::<Single>(Single::LIMIT.next_down(), 0x7f7f_ffff);
        check::<Single>(-Single::LIMIT, 0xff80_0000);
    }

    #[test]
    fn a_nan_is_positive_and_quiet_whatever_it_was() {
        check::<Half>(f32::from_bits(0xff80_0001), 0x7e00);
        check::<Brain>(f32::from_bits(0xffff_ffff), 0x7fc0);
        check::<Single>(f64::from_bits(0xfff0_0000_0000_0001), 0x7fc0_0000);
    }

    #[test]
    fn subnormals_are_numbers() {
        check::<Half>(2f32.powi(-24), 0x0001);
        check::<Half>(2f32.powi(-25), 0x0000);
        check::<Half>(-2f32.powi(-25), 0x8000);
        check::<Half>(2f32.powi(-25).next_up(), 0x0001);
        check::<Brain>(f32::from_bits(0x0001_0000), 0x0001);
        check::<Single>(2f64.powi(-149), 0x0000_0001);
    }
}
