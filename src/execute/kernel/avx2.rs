//! The token for AVX2, F16C and FMA. The only file of the executor that names such instructions.
//!
//! Every `unsafe` block here calls instructions of these features. A token or a value of lanes proves that
//! [`Avx2::detect`] found them: there is no other way to make one. Loads and stores need no alignment.
//!
//! There are no closures here: they would be functions without these instructions, and may stay calls.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]
#![expect(unsafe_code, reason = "instructions that were asked for at run time, loads and stores of vectors")]

use std::arch::x86_64::{
    __m256, __m256d, __m256i, _mm_loadu_ps, _mm_loadu_si128, _mm_storeu_ps, _mm_storeu_si128,
    _mm256_add_epi32, _mm256_add_pd, _mm256_add_ps, _mm256_and_si256, _mm256_castps_si256,
    _mm256_castps256_ps128, _mm256_castsi256_ps, _mm256_cvtpd_ps, _mm256_cvtph_ps, _mm256_cvtps_pd,
    _mm256_cvtps_ph, _mm256_extractf128_ps, _mm256_fmadd_pd, _mm256_loadu_pd, _mm256_loadu_si256,
    _mm256_loadu2_m128, _mm256_mul_pd, _mm256_mul_ps, _mm256_packus_epi32, _mm256_set1_epi32, _mm256_set1_pd,
    _mm256_set1_ps, _mm256_setzero_si256, _mm256_srli_epi32, _mm256_storeu_pd, _mm256_storeu_si256,
    _mm256_storeu2_m128, _mm256_sub_pd, _mm256_sub_ps, _mm256_unpackhi_epi16, _mm256_unpacklo_epi16,
};
use std::ops::{Add, Mul, Sub};

use super::bits::Group;
use super::simd::{Lanes, Partials, Simd, Task};

/// Proves that the processor has AVX2, F16C and FMA.
#[derive(Debug, Clone, Copy)]
pub(in crate::execute) struct Avx2(());

impl Avx2 {
    /// The token, if this processor has the instructions.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::execute) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("fma");
        found.then_some(Self(()))
    }
}

/// Sixteen f32. If `UNPACKED`, the first vector holds the first and the third four, the second one the others: the order
/// in which BF16 are unpacked, and packed again.
#[derive(Clone, Copy)]
pub(in crate::execute) struct Singles<const UNPACKED: bool>([__m256; 2]);

type F32s = Singles<false>;
type Bf16s = Singles<true>;

/// Sixteen f64.
#[derive(Clone, Copy)]
pub(in crate::execute) struct F64s([__m256d; 4]);

impl Simd for Avx2 {
    type F32s = F32s;
    type Bf16s = Bf16s;
    type F64s = F64s;

    fn run<T: Task>(self, task: T) -> T::Output {
        #[inline(never)]
        #[target_feature(enable = "avx2,f16c,fma")]
        fn run<T: Task>(task: T, token: Avx2) -> T::Output {
            task.work(token)
        }
        // SAFETY: AVX2, F16C and FMA, which `self` proves.
        unsafe { run(task, self) }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn widen_f16(self, bits: &Group<u16>) -> F32s {
        let [low, high] = [bits.as_ptr(), bits[8..].as_ptr()];
        // SAFETY: AVX and F16C, which `self` proves; eight u16 are a vector.
        unsafe {
            Singles([
                _mm256_cvtph_ps(_mm_loadu_si128(low.cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(high.cast())),
            ])
        }
    }

    /// Independent of the rounding mode.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn narrow_f16(self, Singles(values): F32s) -> Group<u16> {
        let mut bits = [0; 16];
        for i in 0..2 {
            // SAFETY: AVX and F16C, which `self` proves; eight u16 are a vector.
            unsafe {
                let half = _mm256_cvtps_ph::<0>(values[i]);
                _mm_storeu_si128(bits[8 * i..].as_mut_ptr().cast(), half);
            }
        }
        bits
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn widen_bf16(self, bits: &Group<u16>) -> Bf16s {
        // SAFETY: AVX2, which `self` proves; a group is a vector long.
        unsafe {
            let (bits, zero) = (_mm256_loadu_si256(bits.as_ptr().cast()), _mm256_setzero_si256());
            Singles([
                _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, bits)),
                _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, bits)),
            ])
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn narrow_bf16(self, Singles([first, second]): Bf16s) -> Group<u16> {
        let mut bits = [0; 16];
        // SAFETY: AVX2, which `self` proves; a group is a vector long.
        unsafe {
            let packed = _mm256_packus_epi32(round_to_bf16(first), round_to_bf16(second));
            _mm256_storeu_si256(bits.as_mut_ptr().cast(), packed);
        }
        bits
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn widen_f32(self, bits: &Group<u32>) -> F64s {
        let (fours, _) = bits.as_chunks::<4>();
        // SAFETY: AVX, which `self` proves; four f32 are half a vector.
        unsafe {
            F64s([
                _mm256_cvtps_pd(_mm_loadu_ps(fours[0].as_ptr().cast())),
                _mm256_cvtps_pd(_mm_loadu_ps(fours[1].as_ptr().cast())),
                _mm256_cvtps_pd(_mm_loadu_ps(fours[2].as_ptr().cast())),
                _mm256_cvtps_pd(_mm_loadu_ps(fours[3].as_ptr().cast())),
            ])
        }
    }

    /// As the rounding mode says, which this program leaves at its default.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn narrow_f32(self, F64s(values): F64s) -> Group<u32> {
        let mut bits = [0; 16];
        for i in 0..4 {
            // SAFETY: AVX, which `self` proves; four f32 are half a vector.
            unsafe {
                _mm_storeu_ps(bits[4 * i..].as_mut_ptr().cast(), _mm256_cvtpd_ps(values[i]));
            }
        }
        bits
    }
}

/// The nearest BF16 in the low half of each lane. Adds just under half a unit, and a little more if the kept part is
/// odd: ties go to even.
#[inline]
#[target_feature(enable = "avx2,f16c,fma")]
fn round_to_bf16(values: __m256) -> __m256i {
    let bits = _mm256_castps_si256(values);
    let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, half))
}

/// The sixteen values in f64, in order.
#[inline]
#[target_feature(enable = "avx2,f16c,fma")]
fn to_f64<const UNPACKED: bool>(Singles([first, second]): Singles<UNPACKED>) -> [__m256d; 4] {
    let low = [_mm256_castps256_ps128(first), _mm256_castps256_ps128(second)];
    let high = [_mm256_extractf128_ps::<1>(first), _mm256_extractf128_ps::<1>(second)];
    let fours =
        if UNPACKED { [low[0], low[1], high[0], high[1]] } else { [low[0], high[0], low[1], high[1]] };
    [
        _mm256_cvtps_pd(fours[0]),
        _mm256_cvtps_pd(fours[1]),
        _mm256_cvtps_pd(fours[2]),
        _mm256_cvtps_pd(fours[3]),
    ]
}

/// Adds each value to every eighth one's sum.
#[inline]
#[target_feature(enable = "avx2,f16c,fma")]
fn add_to_sums(values: [__m256d; 4], sums: &mut Partials) {
    for i in 0..2 {
        let sums = sums[4 * i..].as_mut_ptr();
        // SAFETY: four f64 are a vector, and from 0 and from 4 there are four.
        unsafe {
            let sum = _mm256_add_pd(_mm256_loadu_pd(sums), values[i]);
            _mm256_storeu_pd(sums, _mm256_add_pd(sum, values[i + 2]));
        }
    }
}

impl<const UNPACKED: bool> Lanes<f32> for Singles<UNPACKED> {
    type Token = Avx2;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn load(_: Avx2, values: &Group<f32>) -> Self {
        let (fours, _) = values.as_chunks::<4>();
        let [first, second, third, last] = if UNPACKED { [0, 2, 1, 3] } else { [0, 1, 2, 3] };
        // SAFETY: AVX, which the token proves; four f32 are half a vector.
        unsafe {
            Self([
                _mm256_loadu2_m128(fours[second].as_ptr(), fours[first].as_ptr()),
                _mm256_loadu2_m128(fours[last].as_ptr(), fours[third].as_ptr()),
            ])
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn splat(_: Avx2, value: f32) -> Self {
        // SAFETY: AVX, which the token proves.
        Self([unsafe { _mm256_set1_ps(value) }; 2])
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn store(self) -> Group<f32> {
        let mut values = [0.0; 16];
        let (fours, _) = values.as_chunks_mut::<4>();
        for i in 0..2 {
            let (low, high) = if UNPACKED { (i, i + 2) } else { (2 * i, 2 * i + 1) };
            // SAFETY: AVX, which `self` proves; four f32 are half a vector.
            unsafe { _mm256_storeu2_m128(fours[high].as_mut_ptr(), fours[low].as_mut_ptr(), self.0[i]) };
        }
        values
    }

    /// The product of two f32 is exact in f64, so that FMA rounds as often as an addition.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_products(self, other: Self, sums: &mut Partials) {
        // SAFETY: AVX and FMA, which `self` proves; four f64 are a vector, and from 0 and from 4 there are four.
        unsafe {
            let (values, others) = (to_f64(self), to_f64(other));
            for i in 0..2 {
                let sums = sums[4 * i..].as_mut_ptr();
                let sum = _mm256_fmadd_pd(values[i], others[i], _mm256_loadu_pd(sums));
                _mm256_storeu_pd(sums, _mm256_fmadd_pd(values[i + 2], others[i + 2], sum));
            }
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_to(self, sums: &mut Partials) {
        // SAFETY: AVX, which `self` proves.
        unsafe { add_to_sums(to_f64(self), sums) };
    }
}

impl Lanes<f64> for F64s {
    type Token = Avx2;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn load(_: Avx2, values: &Group<f64>) -> Self {
        let (fours, _) = values.as_chunks::<4>();
        // SAFETY: AVX, which the token proves; four f64 are a vector.
        unsafe {
            Self([
                _mm256_loadu_pd(fours[0].as_ptr()),
                _mm256_loadu_pd(fours[1].as_ptr()),
                _mm256_loadu_pd(fours[2].as_ptr()),
                _mm256_loadu_pd(fours[3].as_ptr()),
            ])
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn splat(_: Avx2, value: f64) -> Self {
        // SAFETY: AVX, which the token proves.
        Self([unsafe { _mm256_set1_pd(value) }; 4])
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn store(self) -> Group<f64> {
        let mut values = [0.0; 16];
        for i in 0..4 {
            // SAFETY: AVX, which `self` proves; four f64 are a vector.
            unsafe { _mm256_storeu_pd(values[4 * i..].as_mut_ptr(), self.0[i]) };
        }
        values
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_products(self, other: Self, sums: &mut Partials) {
        (self * other).add_to(sums);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_to(self, sums: &mut Partials) {
        // SAFETY: AVX, which `self` proves.
        unsafe { add_to_sums(self.0, sums) };
    }
}

macro_rules! elementwise {
    ($($lanes:ident $(<$unpacked:ident>)? $trait:ident $function:ident $instruction:ident),*) => {$(
        impl$(<const $unpacked: bool>)? $trait for $lanes $(<$unpacked>)? {
            type Output = Self;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn $function(mut self, other: Self) -> Self {
                for i in 0..self.0.len() {
                    // SAFETY: AVX, which `self` proves.
                    self.0[i] = unsafe { $instruction(self.0[i], other.0[i]) };
                }
                self
            }
        }
    )*};
}

elementwise!(
    Singles<U> Add add _mm256_add_ps, Singles<U> Sub sub _mm256_sub_ps, Singles<U> Mul mul _mm256_mul_ps,
    F64s Add add _mm256_add_pd, F64s Sub sub _mm256_sub_pd, F64s Mul mul _mm256_mul_pd
);
