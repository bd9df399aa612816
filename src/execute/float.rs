//! Stored floats and working precision: F16 and BF16 are worked on in f32, F32 in f64. Decoding is exact; encoding
//! rounds once, ties to even, and gives every NaN the same bits.
//!
//! All loops are over slices without a branch in them, so that the compiler can vectorise them. What works on strips is
//! inlined where it is used, because only there is known which instructions there are; but not in debug builds, where
//! every copy would have its arrays on the stack.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use std::ops::{Add, Mul, Sub};

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use super::bits::{Bits, load};
use super::lanes::{Group, Lanes, Machine};
use crate::checkpoint::Dtype;

/// Elements that are worked on at a time, in arrays that stay in a first-level cache. Divides the tile.
pub(super) const STRIP: usize = 1024;

/// A working precision.
pub(super) trait Work:
    Copy + Default + PartialEq + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    /// The least sum of a strip's squares, if they are taken in this precision, that is right: those that are too small
    /// for it are not missed.
    const LEAST_SQUARES: f64;
    /// Exact.
    fn from_f32(value: f32) -> Self;
    /// Exact.
    fn from_half<M: Machine>(bits: &[u16; STRIP], values: &mut Values<Self>)
    where
        Self: Sized;
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
    // 1024 squares, each wrong by less than 2⁻¹⁴⁹.
    const LEAST_SQUARES: f64 = 1e-30;

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_half<M: Machine>(bits: &[u16; STRIP], values: &mut Values<f32>) {
        Half::decode::<M>(bits, values);
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "parameters enter in working precision")]
    fn from_f64(value: f64) -> Self {
        value as Self
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.abs()
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

impl Work for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    // No square of an f32 is too small for an f64.
    const LEAST_SQUARES: f64 = 0.0;

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Self::from(value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_half<M: Machine>(bits: &[u16; STRIP], values: &mut Values<f64>) {
        let mut narrow = [0.0; STRIP];
        Half::decode::<M>(bits, &mut narrow);
        for (value, narrow) in values.iter_mut().zip(narrow) {
            *value = Self::from(narrow);
        }
    }

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.abs()
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

/// As many values as are worked on at a time in memory. What a tensor's last strip lacks is 0.
pub(super) type Values<W> = [W; STRIP];

/// A float dtype as a base tensor has it.
pub(super) trait Stored {
    /// One element's bits.
    type Bits: Bits;
    /// What it is worked on in.
    type Work: Work;
    /// A group of those in registers.
    type Lanes<M: Machine>: Lanes<Self::Work>;
    const DTYPE: Dtype;
    /// The least magnitude that does not encode to a finite number.
    const LIMIT: Self::Work;
    /// The least magnitude there is beside 0.
    const LEAST: Self::Work;
    /// The bits of the least normal number.
    const LEAST_NORMAL: Self::Bits;
    /// The bits of infinity.
    const INFINITY: Self::Bits;
    /// Exact.
    fn decode<M: Machine>(bits: &[Self::Bits; STRIP], values: &mut Values<Self::Work>);
    /// Rounds `value(i)` for each i, and says whether all are below the limit. If not, no bits are of use but by
    /// [`encode_any`](Self::encode_any).
    fn encode<M: Machine>(value: impl Fn(usize) -> Self::Work, bits: &mut [Self::Bits; STRIP]) -> bool;
    /// The same for any values, infinities and NaNs too.
    fn encode_any(value: impl Fn(usize) -> Self::Work, bits: &mut [Self::Bits; STRIP]);
    /// [`decode`](Self::decode) for a group.
    fn widen<M: Machine>(bits: &Group<Self::Bits>) -> Self::Lanes<M>;
    /// Rounds a group. What is not below the limit becomes infinite or NaN, but for a NaN that came of no input of this
    /// dtype: its bits may be of no use.
    fn narrow<M: Machine>(values: Self::Lanes<M>) -> Group<Self::Bits>;
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
    type Lanes<M: Machine> = M::Halves;
    const DTYPE: Dtype = Dtype::F16;
    // Halfway between the largest f16, 65504, and the next power of two; the tie goes up.
    const LIMIT: f32 = 65520.0;
    const LEAST: f32 = f16::MIN_POSITIVE_SUBNORMAL.to_f32_const();
    const LEAST_NORMAL: u16 = 0x0400;
    const INFINITY: u16 = 0x7c00;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn decode<M: Machine>(bits: &[u16; STRIP], values: &mut Values<f32>) {
        for (bits, values) in bits.as_chunks().0.iter().zip(values.as_chunks_mut().0) {
            *values = M::widen_half(bits).store();
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn encode<M: Machine>(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) -> bool {
        let mut values = [0.0; STRIP];
        let highest = settle(value, &mut values);
        for (values, bits) in values.as_chunks().0.iter().zip(bits.as_chunks_mut().0) {
            *bits = M::narrow_half(M::Halves::load(values));
        }
        highest < Self::LIMIT.to_bits()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn encode_any(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) {
        let mut values = [0.0; STRIP];
        settle(value, &mut values);
        bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(&values);
        for bits in bits {
            *bits = if *bits & 0x7fff > 0x7c00 { 0x7e00 } else { *bits };
        }
    }

    #[inline(always)]
    fn widen<M: Machine>(bits: &Group<u16>) -> M::Halves {
        M::widen_half(bits)
    }

    #[inline(always)]
    fn narrow<M: Machine>(values: M::Halves) -> Group<u16> {
        M::narrow_half(values)
    }
}

/// Computes a strip, and says what the bits of its largest magnitude are.
#[cfg_attr(not(debug_assertions), inline(always))]
fn settle(value: impl Fn(usize) -> f32, values: &mut Values<f32>) -> u32 {
    let mut highest = 0;
    for (i, slot) in values.iter_mut().enumerate() {
        *slot = value(i);
        highest = highest.max(slot.to_bits() & 0x7fff_ffff);
    }
    highest
}

impl Stored for Brain {
    type Bits = u16;
    type Work = f32;
    type Lanes<M: Machine> = M::Brains;
    const DTYPE: Dtype = Dtype::BF16;
    // Halfway between the largest bf16 and the next power of two; the tie goes up.
    const LIMIT: f32 = f32::from_bits(0x7f7f_8000);
    const LEAST: f32 = f32::from_bits(1 << 16);
    const LEAST_NORMAL: u16 = 0x0080;
    const INFINITY: u16 = 0x7f80;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn decode<M: Machine>(bits: &[u16; STRIP], values: &mut Values<f32>) {
        for (value, bits) in values.iter_mut().zip(bits) {
            *value = brain_to_single(*bits);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn encode<M: Machine>(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) -> bool {
        let mut highest = 0;
        for (i, bits) in bits.iter_mut().enumerate() {
            let wide = value(i).to_bits();
            highest = highest.max(wide & 0x7fff_ffff);
            *bits = single_to_brain(wide);
        }
        highest < Self::LIMIT.to_bits()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn encode_any(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) {
        for (i, bits) in bits.iter_mut().enumerate() {
            let wide = value(i).to_bits();
            *bits = if wide & 0x7fff_ffff > 0x7f80_0000 { 0x7fc0 } else { single_to_brain(wide) };
        }
    }

    #[inline(always)]
    fn widen<M: Machine>(bits: &Group<u16>) -> M::Brains {
        M::widen_brain(bits)
    }

    #[inline(always)]
    fn narrow<M: Machine>(values: M::Brains) -> Group<u16> {
        M::narrow_brain(values)
    }
}

/// What a BF16 stands for.
#[inline(always)]
pub(super) fn brain_to_single(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest BF16 to an f32 that is no NaN. Adding just under half a unit, and a little more when the kept part is odd,
/// rounds ties to even.
#[inline(always)]
pub(super) fn single_to_brain(bits: u32) -> u16 {
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

impl Stored for Single {
    type Bits = u32;
    type Work = f64;
    type Lanes<M: Machine> = M::Doubles;
    const DTYPE: Dtype = Dtype::F32;
    // Halfway between the largest f32 and the next power of two; the tie goes up.
    const LIMIT: f64 = 340_282_356_779_733_661_637_539_395_458_142_568_448.0;
    const LEAST: f64 = f32::from_bits(1) as f64;
    const LEAST_NORMAL: u32 = 0x0080_0000;
    const INFINITY: u32 = 0x7f80_0000;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn decode<M: Machine>(bits: &[u32; STRIP], values: &mut Values<f64>) {
        for (value, bits) in values.iter_mut().zip(bits) {
            *value = f64::from(f32::from_bits(*bits));
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    #[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
    fn encode<M: Machine>(value: impl Fn(usize) -> f64, bits: &mut [u32; STRIP]) -> bool {
        let mut highest = 0;
        for (i, bits) in bits.iter_mut().enumerate() {
            *bits = (value(i) as f32).to_bits();
            highest = highest.max(*bits & 0x7fff_ffff);
        }
        highest < f32::INFINITY.to_bits()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    #[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
    fn encode_any(value: impl Fn(usize) -> f64, bits: &mut [u32; STRIP]) {
        for (i, bits) in bits.iter_mut().enumerate() {
            let narrow = (value(i) as f32).to_bits();
            *bits = if narrow & 0x7fff_ffff > 0x7f80_0000 { 0x7fc0_0000 } else { narrow };
        }
    }

    #[inline(always)]
    fn widen<M: Machine>(bits: &Group<u32>) -> M::Doubles {
        M::widen_single(bits)
    }

    #[inline(always)]
    fn narrow<M: Machine>(values: M::Doubles) -> Group<u32> {
        M::narrow_single(values)
    }
}

/// Decodes a donor's bytes, at most [`STRIP`] elements; exact for each float dtype. What is left of the strip is 0.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn decode<M: Machine, W: Work>(dtype: Dtype, bytes: &[u8], values: &mut Values<W>) {
    match dtype {
        Dtype::BF16 => {
            let mut bits = [0; STRIP];
            load(bytes, &mut bits);
            for (value, bits) in values.iter_mut().zip(bits) {
                *value = W::from_f32(brain_to_single(bits));
            }
        }
        Dtype::F16 => {
            let mut bits = [0; STRIP];
            load(bytes, &mut bits);
            W::from_half::<M>(&bits, values);
        }
        Dtype::F32 => {
            let mut bits = [0; STRIP];
            load(bytes, &mut bits);
            for (value, bits) in values.iter_mut().zip(bits) {
                *value = W::from_f32(f32::from_bits(bits));
            }
        }
        other => unreachable!("the planner lets no arithmetic on {other:?} through"),
    }
}

#[cfg(test)]
mod tests;
