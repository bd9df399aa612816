//! Halves by the processor's own conversions and packing. The only file of the executor that names instructions.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use std::arch::x86_64::{
    _mm_loadu_si128, _mm_sfence, _mm_storeu_si128, _mm_stream_si128, _mm256_castsi256_si128, _mm256_cvtph_ps,
    _mm256_cvtps_ph, _mm256_extracti128_si256, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_packus_epi32,
    _mm256_setzero_si256, _mm256_storeu_ps, _mm256_storeu_si256, _mm256_unpackhi_epi16,
    _mm256_unpacklo_epi16,
};

use super::bits::{Stretch, Target};
use super::float::{Machine, STRIP, Values, gather, round_up_to_brain};

/// A processor with AVX2 and F16C.
pub(super) enum Wide {}

impl Machine for Wide {
    const WIDE: bool = true;
}

#[cfg_attr(not(debug_assertions), inline(always))]
#[expect(unsafe_code, reason = "instructions that were asked for at run time")]
pub(super) fn decode<M: Machine>(bits: &[u16; STRIP], values: &mut Values<f32>) {
    debug_assert!(M::WIDE);
    // SAFETY: `M` says that the processor has them.
    unsafe { decode_strip(bits, values) };
}

#[cfg_attr(not(debug_assertions), inline(always))]
#[expect(unsafe_code, reason = "instructions that were asked for at run time")]
pub(super) fn encode<M: Machine>(values: &Values<f32>, bits: &mut [u16; STRIP]) {
    debug_assert!(M::WIDE);
    // SAFETY: `M` says that the processor has them.
    unsafe { encode_strip(values, bits) };
}

/// Computes F16 from bytes to bits, eight elements at a time in registers, and says what the bits of the largest
/// magnitude of a result are.
#[cfg_attr(not(debug_assertions), inline(always))]
#[expect(unsafe_code, reason = "instructions that were asked for at run time")]
pub(super) fn fuse_half<M: Machine, const N: usize>(
    inputs: [&Stretch<u16>; N],
    value: impl Fn([f32; N]) -> f32,
    out: Target<'_, u16>,
) -> u32 {
    debug_assert!(M::WIDE);
    let mut highest = [0; 8];
    let Target { bytes, past_caches } = out;
    let past_caches = past_caches && can_stream(bytes);
    for (i, out) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
        let mut decoded = [[0.0; 8]; N];
        for n in 0..N {
            // SAFETY: `M` says that the processor has them.
            decoded[n] = unsafe { decode_eight(&inputs[n].as_chunks().0[i]) };
        }
        let mut results = [0.0; 8];
        for lane in 0..8 {
            results[lane] = value(gather(|n| decoded[n][lane]));
            highest[lane] = results[lane].abs().to_bits().max(highest[lane]);
        }
        // SAFETY: `M` says that the processor has them, and `can_stream` that the place is aligned.
        unsafe {
            let mut bits = [0_u16; 8];
            encode_eight(&results, &mut bits);
            put_eight(&bits, out, past_caches);
        }
    }
    highest.into_iter().fold(0, u32::max)
}

/// Computes BF16 from bytes to bits, sixteen elements at a time in registers, and says what the bits of the largest
/// magnitude of a *rounded* result are.
#[cfg_attr(not(debug_assertions), inline(always))]
#[expect(unsafe_code, reason = "instructions that were asked for at run time")]
pub(super) fn fuse_brain<M: Machine, const N: usize>(
    inputs: [&Stretch<u16>; N],
    value: impl Fn([f32; N]) -> f32,
    out: Target<'_, u16>,
) -> u16 {
    debug_assert!(M::WIDE);
    let mut highest = [0; 16];
    let Target { bytes, past_caches } = out;
    let past_caches = past_caches && can_stream(bytes);
    for (i, out) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
        let mut decoded = [[0.0; 16]; N];
        for n in 0..N {
            // SAFETY: `M` says that the processor has them.
            decoded[n] = unsafe { widen_sixteen(&inputs[n].as_chunks().0[i]) };
        }
        let mut results = [0; 16];
        for lane in 0..16 {
            results[lane] = round_up_to_brain(value(gather(|n| decoded[n][lane])).to_bits()) >> 16;
        }
        let mut bits = [0_u16; 16];
        // SAFETY: `M` says that the processor has them, and `can_stream` that the place is aligned.
        unsafe {
            pack_sixteen(&results, &mut bits);
            put_sixteen(&bits, out, past_caches);
        }
        for lane in 0..16 {
            highest[lane] = (bits[lane] & 0x7fff).max(highest[lane]);
        }
    }
    highest.into_iter().fold(0, u16::max)
}

#[target_feature(enable = "avx2,f16c")]
fn decode_strip(bits: &[u16; STRIP], values: &mut Values<f32>) {
    for (bits, values) in bits.as_chunks().0.iter().zip(values.as_chunks_mut().0) {
        *values = decode_eight(bits);
    }
}

#[target_feature(enable = "avx2,f16c")]
fn encode_strip(values: &Values<f32>, bits: &mut [u16; STRIP]) {
    for (values, bits) in values.as_chunks().0.iter().zip(bits.as_chunks_mut().0) {
        encode_eight(values, bits);
    }
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
#[expect(unsafe_code, reason = "loads and stores of vectors")]
fn decode_eight<T>(bits: &[T; 8]) -> [f32; 8] {
    const { assert!(size_of::<T>() == 2) };
    let mut values = [0.0; 8];
    // SAFETY: both are eight elements long, and neither has to be aligned.
    unsafe { _mm256_storeu_ps(values.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(bits.as_ptr().cast()))) };
    values
}

/// To nearest, ties to even, whatever the rounding mode is.
#[inline]
#[target_feature(enable = "avx2,f16c")]
#[expect(unsafe_code, reason = "loads and stores of vectors")]
fn encode_eight(values: &[f32; 8], bits: &mut [u16; 8]) {
    // SAFETY: both are eight elements long, and neither has to be aligned.
    unsafe {
        let half = _mm256_cvtps_ph::<0>(_mm256_loadu_ps(values.as_ptr()));
        _mm_storeu_si128(bits.as_mut_ptr().cast(), half);
    }
}

/// Sixteen BF16 as f32, in the order in which [`pack_sixteen`] takes them: what the first, second, third and last four
/// become stands first, third, second and last.
#[inline]
#[target_feature(enable = "avx2,f16c")]
#[expect(unsafe_code, reason = "loads and stores of vectors")]
fn widen_sixteen(bytes: &[[u8; 2]; 16]) -> [f32; 16] {
    let mut values = [0.0; 16];
    // SAFETY: both are sixteen elements long, and neither has to be aligned.
    unsafe {
        let (bits, zero) = (_mm256_loadu_si256(bytes.as_ptr().cast()), _mm256_setzero_si256());
        let (low, high) = (_mm256_unpacklo_epi16(zero, bits), _mm256_unpackhi_epi16(zero, bits));
        let (first, second) = values.split_at_mut(8);
        _mm256_storeu_si256(first.as_mut_ptr().cast(), low);
        _mm256_storeu_si256(second.as_mut_ptr().cast(), high);
    }
    values
}

/// The lower halves, whose upper halves are 0, in the order of the elements.
#[inline]
#[target_feature(enable = "avx2,f16c")]
#[expect(unsafe_code, reason = "loads and stores of vectors")]
fn pack_sixteen(halves: &[u32; 16], bits: &mut [u16; 16]) {
    let (first, second) = halves.split_at(8);
    // SAFETY: both are sixteen elements long, and neither has to be aligned.
    unsafe {
        let low = _mm256_loadu_si256(first.as_ptr().cast());
        let high = _mm256_loadu_si256(second.as_ptr().cast());
        _mm256_storeu_si256(bits.as_mut_ptr().cast(), _mm256_packus_epi32(low, high));
    }
}

/// Whether stores past the caches can be used there: they want 16 bytes aligned, as memory from malloc is.
#[inline(always)]
fn can_stream(out: &Stretch<u16>) -> bool {
    out.as_ptr().addr().is_multiple_of(16)
}

/// # Safety
/// If it is to go past the caches, `out` is aligned to 16 bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
#[expect(unsafe_code, reason = "loads and stores of vectors")]
unsafe fn put_eight(bits: &[u16; 8], out: &mut [[u8; 2]; 8], past_caches: bool) {
    // SAFETY: both are eight elements long; the alignment is the caller's word.
    unsafe {
        let (bits, out) = (_mm_loadu_si128(bits.as_ptr().cast()), out.as_mut_ptr().cast());
        if past_caches { _mm_stream_si128(out, bits) } else { _mm_storeu_si128(out, bits) }
    }
}

/// # Safety
/// If it is to go past the caches, `out` is aligned to 16 bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
#[expect(unsafe_code, reason = "loads and stores of vectors")]
unsafe fn put_sixteen(bits: &[u16; 16], out: &mut [[u8; 2]; 16], past_caches: bool) {
    // SAFETY: both are sixteen elements long; the alignment is the caller's word.
    unsafe {
        let bits = _mm256_loadu_si256(bits.as_ptr().cast());
        if past_caches {
            let (first, second) = out.split_at_mut(8);
            _mm_stream_si128(first.as_mut_ptr().cast(), _mm256_castsi256_si128(bits));
            _mm_stream_si128(second.as_mut_ptr().cast(), _mm256_extracti128_si256::<1>(bits));
        } else {
            _mm256_storeu_si256(out.as_mut_ptr().cast(), bits);
        }
    }
}

/// Makes what went past the caches visible to whoever is told afterwards that it is there.
#[inline(always)]
#[expect(unsafe_code, reason = "a fence")]
pub(super) fn fence() {
    // SAFETY: every x86-64 has it.
    unsafe { _mm_sfence() };
}
