//! F16 by the processor's own conversions. The only file of the executor that names instructions.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use std::arch::x86_64::{
    _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
};

use super::float::{Machine, STRIP, Values};

/// A processor with AVX2 and F16C.
pub(super) enum Wide {}

impl Machine for Wide {
    const WIDE: bool = true;
}

#[inline(always)]
#[expect(unsafe_code, reason = "instructions that were asked for at run time")]
pub(super) fn decode<M: Machine>(bits: &[u16; STRIP], values: &mut Values<f32>) {
    debug_assert!(M::WIDE);
    // SAFETY: `M` says that the processor has them.
    unsafe { decode_strip(bits, values) };
}

#[inline(always)]
#[expect(unsafe_code, reason = "instructions that were asked for at run time")]
pub(super) fn encode<M: Machine>(values: &Values<f32>, bits: &mut [u16; STRIP]) {
    debug_assert!(M::WIDE);
    // SAFETY: `M` says that the processor has them.
    unsafe { encode_strip(values, bits) };
}

#[target_feature(enable = "avx2,f16c")]
#[expect(unsafe_code, reason = "loads and stores of vectors")]
fn decode_strip(bits: &[u16; STRIP], values: &mut Values<f32>) {
    for (bits, values) in bits.as_chunks::<8>().0.iter().zip(values.as_chunks_mut::<8>().0) {
        // SAFETY: both are eight elements long, and neither has to be aligned.
        unsafe {
            let wide = _mm256_cvtph_ps(_mm_loadu_si128(bits.as_ptr().cast()));
            _mm256_storeu_ps(values.as_mut_ptr(), wide);
        };
    }
}

/// To nearest, ties to even, whatever the rounding mode is.
#[target_feature(enable = "avx2,f16c")]
#[expect(unsafe_code, reason = "loads and stores of vectors")]
fn encode_strip(values: &Values<f32>, bits: &mut [u16; STRIP]) {
    for (values, bits) in values.as_chunks::<8>().0.iter().zip(bits.as_chunks_mut::<8>().0) {
        // SAFETY: both are eight elements long, and neither has to be aligned.
        unsafe {
            let half = _mm256_cvtps_ph::<0>(_mm256_loadu_ps(values.as_ptr()));
            _mm_storeu_si128(bits.as_mut_ptr().cast(), half);
        }
    }
}
