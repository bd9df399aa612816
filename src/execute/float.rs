//! Stored floats and working precision: F16 and BF16 are worked on in f32, F32 in f64. Decoding is exact; encoding
//! rounds once, ties to even, and gives every NaN the same bits.
//!
//! All loops are over slices without a branch in them, so that the compiler can vectorise them.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use std::ops::{Add, Mul, Sub};

#[cfg(target_arch = "x86_64")]
use super::f16c;
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

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value
    }

    #[inline(always)]
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

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Self::from(value)
    }

    #[inline(always)]
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

/// As many values as are worked on at a time. What a tensor's last strip lacks is 0.
pub(super) type Values<W> = [W; STRIP];

/// The instructions that code is compiled for.
pub(super) trait Machine {
    /// Whether the processor has AVX2 and F16C.
    const WIDE: bool;
}

/// What every processor of the platform has.
pub(super) enum Plain {}

impl Machine for Plain {
    const WIDE: bool = false;
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
    /// Exact.
    fn decode<M: Machine>(bits: &[Self::Bits; STRIP], values: &mut Values<Self::Work>);
    /// Rounds `value(i)` for each i, and says whether all are below the limit. If not, no bits are of use but by
    /// [`encode_any`](Self::encode_any).
    fn encode<M: Machine>(value: impl Fn(usize) -> Self::Work, bits: &mut [Self::Bits; STRIP]) -> bool;
    /// The same for any values, infinities and NaNs too.
    fn encode_any(value: impl Fn(usize) -> Self::Work, bits: &mut [Self::Bits; STRIP]);
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

    #[inline(always)]
    fn load(bytes: &[u8], bits: &mut [u16]) {
        load_u16(bytes, bits);
    }

    #[inline(always)]
    fn store(bits: &[u16], bytes: &mut [u8]) {
        store_u16(bits, bytes);
    }

    #[inline(always)]
    fn decode<M: Machine>(bits: &[u16; STRIP], values: &mut Values<f32>) {
        #[cfg(target_arch = "x86_64")]
        if M::WIDE {
            return f16c::decode::<M>(bits, values);
        }
        bits.reinterpret_cast::<f16>().convert_to_f32_slice(values);
    }

    #[inline(always)]
    fn encode<M: Machine>(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) -> bool {
        let mut values = [0.0; STRIP];
        let highest = settle(value, &mut values);
        #[cfg(target_arch = "x86_64")]
        if M::WIDE {
            f16c::encode::<M>(&values, bits);
            return highest < Self::LIMIT.to_bits();
        }
        bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(&values);
        highest < Self::LIMIT.to_bits()
    }

    #[inline(always)]
    fn encode_any(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) {
        let mut values = [0.0; STRIP];
        settle(value, &mut values);
        bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(&values);
        for bits in bits {
            *bits = if *bits & 0x7fff > 0x7c00 { 0x7e00 } else { *bits };
        }
    }
}

/// Computes a strip, and says what the bits of its largest magnitude are.
#[inline(always)]
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
    const BYTES: usize = 2;
    // Halfway between the largest bf16 and the next power of two; the tie goes up.
    const LIMIT: f32 = f32::from_bits(0x7f7f_8000);
    const NORMAL: f32 = f32::MIN_POSITIVE;

    #[inline(always)]
    fn load(bytes: &[u8], bits: &mut [u16]) {
        load_u16(bytes, bits);
    }

    #[inline(always)]
    fn store(bits: &[u16], bytes: &mut [u8]) {
        store_u16(bits, bytes);
    }

    #[inline(always)]
    fn decode<M: Machine>(bits: &[u16; STRIP], values: &mut Values<f32>) {
        for (value, bits) in values.iter_mut().zip(bits) {
            *value = f32::from_bits(u32::from(*bits) << 16);
        }
    }

    #[inline(always)]
    fn encode<M: Machine>(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) -> bool {
        let mut highest = 0;
        for (i, bits) in bits.iter_mut().enumerate() {
            let wide = value(i).to_bits();
            highest = highest.max(wide & 0x7fff_ffff);
            *bits = round_to_brain(wide);
        }
        highest < Self::LIMIT.to_bits()
    }

    #[inline(always)]
    fn encode_any(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) {
        for (i, bits) in bits.iter_mut().enumerate() {
            let wide = value(i).to_bits();
            *bits = if wide & 0x7fff_ffff > 0x7f80_0000 { 0x7fc0 } else { round_to_brain(wide) };
        }
    }
}

/// The upper half of an f32's bits. Adding just under half a unit, and a little more when the kept part is odd, rounds
/// ties to even.
#[inline(always)]
fn round_to_brain(wide: u32) -> u16 {
    (wide.wrapping_add(0x7fff + (wide >> 16 & 1)) >> 16) as u16
}

impl Stored for Single {
    type Bits = u32;
    type Work = f64;
    const BYTES: usize = 4;
    // Halfway between the largest f32 and the next power of two; the tie goes up.
    const LIMIT: f64 = 340_282_356_779_733_661_637_539_395_458_142_568_448.0;
    const NORMAL: f64 = f32::MIN_POSITIVE as f64;

    #[inline(always)]
    fn load(bytes: &[u8], bits: &mut [u32]) {
        for (bits, bytes) in bits.iter_mut().zip(bytes.as_chunks().0) {
            *bits = u32::from_le_bytes(*bytes);
        }
    }

    #[inline(always)]
    fn store(bits: &[u32], bytes: &mut [u8]) {
        for (bits, bytes) in bits.iter().zip(bytes.as_chunks_mut().0) {
            *bytes = bits.to_le_bytes();
        }
    }

    #[inline(always)]
    fn decode<M: Machine>(bits: &[u32; STRIP], values: &mut Values<f64>) {
        for (value, bits) in values.iter_mut().zip(bits) {
            *value = f64::from(f32::from_bits(*bits));
        }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
    fn encode<M: Machine>(value: impl Fn(usize) -> f64, bits: &mut [u32; STRIP]) -> bool {
        let mut highest = 0;
        for (i, bits) in bits.iter_mut().enumerate() {
            *bits = (value(i) as f32).to_bits();
            highest = highest.max(*bits & 0x7fff_ffff);
        }
        highest < f32::INFINITY.to_bits()
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
    fn encode_any(value: impl Fn(usize) -> f64, bits: &mut [u32; STRIP]) {
        for (i, bits) in bits.iter_mut().enumerate() {
            let narrow = (value(i) as f32).to_bits();
            *bits = if narrow & 0x7fff_ffff > 0x7f80_0000 { 0x7fc0_0000 } else { narrow };
        }
    }
}

/// Decodes a donor's bytes, at most [`STRIP`] elements; exact for each float dtype. What is left of the strip is 0.
#[inline(always)]
pub(super) fn decode<M: Machine, W: Work>(dtype: Dtype, bytes: &[u8], values: &mut Values<W>) {
    let n = bytes.len() / (dtype.bitsize() / 8);
    match dtype {
        Dtype::BF16 => {
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                *value = W::from_f32(f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16));
            }
        }
        Dtype::F16 => {
            let mut bits = [0; STRIP];
            load_u16(bytes, &mut bits);
            W::from_half::<M>(&bits, values);
        }
        Dtype::F32 => {
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                *value = W::from_f32(f32::from_le_bytes(*bytes));
            }
        }
        other => unreachable!("the planner lets no arithmetic on {other:?} through"),
    }
    values[n..].fill(W::ZERO);
}

#[inline(always)]
fn load_u16(bytes: &[u8], bits: &mut [u16]) {
    for (bits, bytes) in bits.iter_mut().zip(bytes.as_chunks().0) {
        *bits = u16::from_le_bytes(*bytes);
    }
}

#[inline(always)]
fn store_u16(bits: &[u16], bytes: &mut [u8]) {
    for (bits, bytes) in bits.iter().zip(bytes.as_chunks_mut().0) {
        *bytes = bits.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bit pattern decodes and encodes to itself, but for NaNs, which all become one.
    fn check_round_trip<M: Machine, S: Stored<Bits = u16, Work = f32>>(infinity: u16, nan: u16) {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        for strip in all.as_chunks::<STRIP>().0 {
            let (mut values, mut back) = ([0.0; STRIP], [0; STRIP]);
            S::decode::<M>(strip, &mut values);
            let sound = S::encode::<M>(|i| values[i], &mut back);
            assert_eq!(sound, strip.iter().all(|bits| bits & 0x7fff < infinity), "{:#x}", strip[0]);
            if sound {
                assert_eq!(back, *strip);
            }
            S::encode_any(|i| values[i], &mut back);
            for (bits, back) in strip.iter().zip(&back) {
                let expected = if bits & 0x7fff > infinity { nan } else { *bits };
                assert_eq!(*back, expected, "{bits:#x}");
            }
        }
    }

    #[test]
    fn every_half_survives_the_way_there_and_back() {
        check_round_trip::<Plain, Half>(0x7c00, 0x7e00);
        check_round_trip::<Plain, Brain>(0x7f80, 0x7fc0);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
            check_round_trip::<f16c::Wide, Half>(0x7c00, 0x7e00);
        }
    }

    #[track_caller]
    fn check<S: Stored>(value: S::Work, expected: S::Bits)
    where
        S::Bits: std::fmt::LowerHex + std::fmt::Debug,
    {
        let (mut bits, mut any) = ([S::Bits::default(); STRIP], [S::Bits::default(); STRIP]);
        let sound = S::encode::<Plain>(|_| value, &mut bits);
        S::encode_any(|_| value, &mut any);
        assert_eq!(any[STRIP - 1], expected, "{:#x} is not {expected:#x}", any[STRIP - 1]);
        assert_eq!(sound, value.abs() < S::LIMIT);
        assert!(!sound || bits == any);
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
