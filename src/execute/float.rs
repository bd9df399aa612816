//! Stored floats and working precision: F16 and BF16 are worked on in f32, F32 in f64. Decoding is exact; encoding
//! rounds once, ties to even, and gives every NaN the same bits.
//!
//! All loops are over slices without a branch in them, so that the compiler can vectorise them. What works on strips is
//! inlined where it is used, because only there is known which instructions there are; but not in debug builds, where
//! every copy would have its arrays on the stack.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use std::ops::{Add, Mul, Sub};

#[cfg(target_arch = "x86_64")]
use super::wide;
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use super::bits::{Bits, Stretch, Target, load};
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
    type Bits: Bits;
    /// What it is worked on in.
    type Work: Work;
    const DTYPE: Dtype;
    /// The least magnitude that does not encode to a finite number.
    const LIMIT: Self::Work;
    /// The least normal number.
    const NORMAL: Self::Work;
    /// Exact.
    fn decode<M: Machine>(bits: &[Self::Bits; STRIP], values: &mut Values<Self::Work>);
    /// Rounds `value(i)` for each i, and says whether all are below the limit. If not, no bits are of use but by
    /// [`encode_any`](Self::encode_any).
    fn encode<M: Machine>(value: impl Fn(usize) -> Self::Work, bits: &mut [Self::Bits; STRIP]) -> bool;
    /// The same of what `value` makes of the inputs' elements, in one pass from bytes to bits. Values that are not below
    /// the limit must come of `value`'s arithmetic or of the inputs: no NaN may have bits that no input could have.
    fn fuse<M: Machine, const N: usize>(
        inputs: [&Stretch<Self::Bits>; N],
        value: impl Fn([Self::Work; N]) -> Self::Work,
        out: Target<'_, Self::Bits>,
    ) -> bool;
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
    const DTYPE: Dtype = Dtype::F16;
    // Halfway between the largest f16, 65504, and the next power of two; the tie goes up.
    const LIMIT: f32 = 65520.0;
    const NORMAL: f32 = f16::MIN_POSITIVE.to_f32_const();

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn decode<M: Machine>(bits: &[u16; STRIP], values: &mut Values<f32>) {
        #[cfg(target_arch = "x86_64")]
        if M::WIDE {
            return wide::decode::<M>(bits, values);
        }
        bits.reinterpret_cast::<f16>().convert_to_f32_slice(values);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn encode<M: Machine>(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) -> bool {
        let mut values = [0.0; STRIP];
        let highest = settle(value, &mut values);
        #[cfg(target_arch = "x86_64")]
        if M::WIDE {
            wide::encode::<M>(&values, bits);
            return highest < Self::LIMIT.to_bits();
        }
        bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(&values);
        highest < Self::LIMIT.to_bits()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn fuse<M: Machine, const N: usize>(
        inputs: [&Stretch<u16>; N],
        value: impl Fn([f32; N]) -> f32,
        out: Target<'_, u16>,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if M::WIDE {
            return wide::fuse_half::<M, N>(inputs, value, out) < Self::LIMIT.to_bits();
        }
        let mut values = [[0.0; STRIP]; N];
        let mut bits = [0; STRIP];
        for (values, input) in values.iter_mut().zip(inputs) {
            for (bits, bytes) in bits.iter_mut().zip(input) {
                *bits = u16::from_le_bytes(*bytes);
            }
            Self::decode::<M>(&bits, values);
        }
        let sound = Self::encode::<M>(|i| value(gather(|n| values[n][i])), &mut bits);
        for (bytes, bits) in out.bytes.iter_mut().zip(bits) {
            *bytes = bits.to_le_bytes();
        }
        sound
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
    const DTYPE: Dtype = Dtype::BF16;
    // Halfway between the largest bf16 and the next power of two; the tie goes up.
    const LIMIT: f32 = f32::from_bits(0x7f7f_8000);
    const NORMAL: f32 = f32::MIN_POSITIVE;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn decode<M: Machine>(bits: &[u16; STRIP], values: &mut Values<f32>) {
        for (value, bits) in values.iter_mut().zip(bits) {
            *value = widen(*bits);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn encode<M: Machine>(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) -> bool {
        let mut highest = 0;
        for (i, bits) in bits.iter_mut().enumerate() {
            let wide = value(i).to_bits();
            highest = highest.max(wide & 0x7fff_ffff);
            *bits = round_to_brain(wide);
        }
        highest < Self::LIMIT.to_bits()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn fuse<M: Machine, const N: usize>(
        inputs: [&Stretch<u16>; N],
        value: impl Fn([f32; N]) -> f32,
        out: Target<'_, u16>,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if M::WIDE {
            return wide::fuse_brain::<M, N>(inputs, value, out) < 0x7f80;
        }
        let mut highest = 0;
        for (i, bytes) in out.bytes.iter_mut().enumerate() {
            let wide = value(gather(|n| widen(u16::from_le_bytes(inputs[n][i])))).to_bits();
            highest = highest.max(wide & 0x7fff_ffff);
            *bytes = round_to_brain(wide).to_le_bytes();
        }
        highest < Self::LIMIT.to_bits()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn encode_any(value: impl Fn(usize) -> f32, bits: &mut [u16; STRIP]) {
        for (i, bits) in bits.iter_mut().enumerate() {
            let wide = value(i).to_bits();
            *bits = if wide & 0x7fff_ffff > 0x7f80_0000 { 0x7fc0 } else { round_to_brain(wide) };
        }
    }
}

/// One element of each input. The compiler vectorises this, but not what [`array::map`] does.
#[inline(always)]
pub(super) fn gather<W: Work, const N: usize>(input: impl Fn(usize) -> W) -> [W; N] {
    let mut elements = [W::ZERO; N];
    for (n, element) in elements.iter_mut().enumerate() {
        *element = input(n);
    }
    elements
}

/// What a BF16 stands for.
#[inline(always)]
fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The upper half of an f32's bits, rounded.
#[inline(always)]
fn round_to_brain(wide: u32) -> u16 {
    (round_up_to_brain(wide) >> 16) as u16
}

/// An f32's bits, of which the upper half is then the nearest BF16's. Adding just under half a unit, and a little more
/// when the kept part is odd, rounds ties to even.
#[inline(always)]
pub(super) fn round_up_to_brain(wide: u32) -> u32 {
    wide.wrapping_add(0x7fff + (wide >> 16 & 1))
}

impl Stored for Single {
    type Bits = u32;
    type Work = f64;
    const DTYPE: Dtype = Dtype::F32;
    // Halfway between the largest f32 and the next power of two; the tie goes up.
    const LIMIT: f64 = 340_282_356_779_733_661_637_539_395_458_142_568_448.0;
    const NORMAL: f64 = f32::MIN_POSITIVE as f64;

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
    fn fuse<M: Machine, const N: usize>(
        inputs: [&Stretch<u32>; N],
        value: impl Fn([f64; N]) -> f64,
        out: Target<'_, u32>,
    ) -> bool {
        let mut highest = 0;
        for (i, bytes) in out.bytes.iter_mut().enumerate() {
            let bits = (value(gather(|n| f64::from(f32::from_le_bytes(inputs[n][i])))) as f32).to_bits();
            highest = highest.max(bits & 0x7fff_ffff);
            *bytes = bits.to_le_bytes();
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
}

/// Decodes a donor's bytes, at most [`STRIP`] elements; exact for each float dtype. What is left of the strip is 0.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn decode<M: Machine, W: Work>(dtype: Dtype, bytes: &[u8], values: &mut Values<W>) {
    match dtype {
        Dtype::BF16 => {
            let mut bits = [0; STRIP];
            load(bytes, &mut bits);
            for (value, bits) in values.iter_mut().zip(bits) {
                *value = W::from_f32(widen(bits));
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
