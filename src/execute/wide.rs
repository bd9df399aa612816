//! A machine with AVX2. The only file of the executor that names instructions.
//!
//! The compiler contracts nothing by itself, so that a multiplication and an addition stay two roundings although there
//! is FMA; it is asked for only where the product is exact.
//!
//! There are no closures here: they would be functions without these instructions, which need not be inlined.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]
#![expect(unsafe_code, reason = "instructions that were asked for at run time, loads and stores of vectors")]

use std::arch::x86_64::{
    __m128i, __m256, __m256d, __m256i, _mm_loadu_ps, _mm_loadu_si128, _mm_sfence, _mm_storeu_ps,
    _mm_storeu_si128, _mm_stream_si128, _mm256_add_epi32, _mm256_add_pd, _mm256_add_ps, _mm256_and_si256,
    _mm256_castps_si256, _mm256_castps256_ps128, _mm256_castsi256_ps, _mm256_cvtpd_ps, _mm256_cvtph_ps,
    _mm256_cvtps_pd, _mm256_cvtps_ph, _mm256_extractf128_ps, _mm256_fmadd_pd, _mm256_loadu_pd,
    _mm256_loadu_si256, _mm256_loadu2_m128, _mm256_mul_pd, _mm256_mul_ps, _mm256_packus_epi32,
    _mm256_set1_epi32, _mm256_set1_pd, _mm256_set1_ps, _mm256_setzero_si256, _mm256_srli_epi32,
    _mm256_storeu_pd, _mm256_storeu_si256, _mm256_storeu2_m128, _mm256_sub_pd, _mm256_sub_ps,
    _mm256_unpackhi_epi16, _mm256_unpacklo_epi16,
};
use std::ops::{Add, Mul, Sub};

use super::bits::Bits;
use super::lanes::{Group, Lanes, Machine, Partials, Task};

/// A processor with AVX2, F16C and FMA. Whoever computes with it has asked for them; that is what makes all here sound.
/// No load or store wants alignment, but for one that says so.
pub(super) enum Wide {}

impl Wide {
    /// Whether this processor is one.
    #[inline(always)]
    pub(super) fn is_here() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("fma")
    }
}

/// Sixteen f32. If they are `UNPACKED`, the first vector is the first and the third four, the second the second and the
/// last: that is how BF16 are unpacked, and packed again.
#[derive(Clone, Copy)]
pub(super) struct Singles<const UNPACKED: bool>([__m256; 2]);

type Halves = Singles<false>;
type Brains = Singles<true>;

/// Sixteen f64.
#[derive(Clone, Copy)]
pub(super) struct Doubles([__m256d; 4]);

impl Machine for Wide {
    fn run<T: Task<Self>>(task: T) -> T::Made {
        #[inline(never)]
        #[target_feature(enable = "avx2,f16c,fma")]
        fn run<T: Task<Wide>>(task: T) -> T::Made {
            task.work()
        }
        // SAFETY: the processor has them.
        unsafe { run(task) }
    }

    type Halves = Halves;
    type Brains = Brains;
    type Doubles = Doubles;

    #[inline(always)]
    fn widen_half(bits: &Group<u16>) -> Halves {
        let (eights, _) = bits.as_chunks::<8>();
        // SAFETY: the processor has them, and eight are a vector.
        unsafe {
            Singles([
                _mm256_cvtph_ps(_mm_loadu_si128(eights[0].as_ptr().cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(eights[1].as_ptr().cast())),
            ])
        }
    }

    /// Whatever the rounding mode is.
    #[inline(always)]
    fn narrow_half(Singles(values): Halves) -> Group<u16> {
        let mut bits = [0; 16];
        let (eights, _) = bits.as_chunks_mut::<8>();
        for i in 0..2 {
            // SAFETY: the processor has them, and eight are a vector.
            unsafe { _mm_storeu_si128(eights[i].as_mut_ptr().cast(), _mm256_cvtps_ph::<0>(values[i])) };
        }
        bits
    }

    #[inline(always)]
    fn widen_brain(bits: &Group<u16>) -> Brains {
        // SAFETY: the processor has them, and a group is a vector long.
        unsafe {
            let (bits, zero) = (_mm256_loadu_si256(bits.as_ptr().cast()), _mm256_setzero_si256());
            Singles([
                _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, bits)),
                _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, bits)),
            ])
        }
    }

    #[inline(always)]
    fn narrow_brain(Singles([first, last]): Brains) -> Group<u16> {
        let mut bits = [0; 16];
        // SAFETY: the processor has them, and a group is a vector long.
        unsafe {
            let packed = _mm256_packus_epi32(upper_halves(first), upper_halves(last));
            _mm256_storeu_si256(bits.as_mut_ptr().cast(), packed);
        }
        bits
    }

    #[inline(always)]
    fn widen_single(bits: &Group<u32>) -> Doubles {
        let (fours, _) = bits.as_chunks::<4>();
        // SAFETY: the processor has them, and four f32 are half a vector.
        unsafe {
            Doubles([
                _mm256_cvtps_pd(_mm_loadu_ps(fours[0].as_ptr().cast())),
                _mm256_cvtps_pd(_mm_loadu_ps(fours[1].as_ptr().cast())),
                _mm256_cvtps_pd(_mm_loadu_ps(fours[2].as_ptr().cast())),
                _mm256_cvtps_pd(_mm_loadu_ps(fours[3].as_ptr().cast())),
            ])
        }
    }

    /// As the rounding mode is, which nobody changes.
    #[inline(always)]
    fn narrow_single(Doubles(values): Doubles) -> Group<u32> {
        let mut bits = [0; 16];
        let (fours, _) = bits.as_chunks_mut::<4>();
        for i in 0..4 {
            // SAFETY: the processor has them, and four f32 are half a vector.
            unsafe { _mm_storeu_ps(fours[i].as_mut_ptr().cast(), _mm256_cvtpd_ps(values[i])) };
        }
        bits
    }
}

/// The nearest BF16 to each. Adding just under half a unit, and a little more when the kept part is odd, rounds ties to
/// even.
#[inline]
#[target_feature(enable = "avx2,f16c,fma")]
fn upper_halves(values: __m256) -> __m256i {
    let bits = _mm256_castps_si256(values);
    let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, half))
}

impl<const UNPACKED: bool> Lanes<f32> for Singles<UNPACKED> {
    #[inline(always)]
    fn load(values: &Group<f32>) -> Self {
        let (fours, _) = values.as_chunks::<4>();
        let [first, second, third, last] = if UNPACKED { [0, 2, 1, 3] } else { [0, 1, 2, 3] };
        // SAFETY: the processor has it, and four are half a vector.
        unsafe {
            Self([
                _mm256_loadu2_m128(fours[second].as_ptr(), fours[first].as_ptr()),
                _mm256_loadu2_m128(fours[last].as_ptr(), fours[third].as_ptr()),
            ])
        }
    }

    #[inline(always)]
    fn store(self) -> Group<f32> {
        let mut values = [0.0; 16];
        let (fours, _) = values.as_chunks_mut::<4>();
        for i in 0..2 {
            let (low, high) = if UNPACKED { (i, i + 2) } else { (2 * i, 2 * i + 1) };
            // SAFETY: the processor has it, and four are half a vector.
            unsafe { _mm256_storeu2_m128(fours[high].as_mut_ptr(), fours[low].as_mut_ptr(), self.0[i]) };
        }
        values
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: the processor has it.
        Self([unsafe { _mm256_set1_ps(value) }; 2])
    }

    /// The product of two f32 is exact in f64, so that FMA rounds as often as an addition.
    #[inline(always)]
    fn add_products(self, other: Self, sums: &mut Partials) {
        let Self([first, second]) = self;
        let Self([other_first, other_second]) = other;
        let (fours, _) = sums.as_chunks_mut::<4>();
        // SAFETY: the processor has them, and four f64 are a vector.
        unsafe {
            let values = [lower(first), upper(first), lower(second), upper(second)];
            let others = [lower(other_first), upper(other_first), lower(other_second), upper(other_second)];
            let mut totals = [_mm256_loadu_pd(fours[0].as_ptr()), _mm256_loadu_pd(fours[1].as_ptr())];
            for i in 0..4 {
                let total = &mut totals[if UNPACKED { i / 2 } else { i % 2 }];
                *total = _mm256_fmadd_pd(values[i], others[i], *total);
            }
            _mm256_storeu_pd(fours[0].as_mut_ptr(), totals[0]);
            _mm256_storeu_pd(fours[1].as_mut_ptr(), totals[1]);
        }
    }

    #[inline(always)]
    fn add_to(self, sums: &mut Partials) {
        let Self([first, second]) = self;
        let (fours, _) = sums.as_chunks_mut::<4>();
        // SAFETY: the processor has them, and four f64 are a vector.
        unsafe {
            let values = [lower(first), upper(first), lower(second), upper(second)];
            for i in 0..4 {
                let sum = fours[if UNPACKED { i / 2 } else { i % 2 }].as_mut_ptr();
                _mm256_storeu_pd(sum, _mm256_add_pd(_mm256_loadu_pd(sum), values[i]));
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,f16c,fma")]
fn lower(values: __m256) -> __m256d {
    _mm256_cvtps_pd(_mm256_castps256_ps128(values))
}

#[inline]
#[target_feature(enable = "avx2,f16c,fma")]
fn upper(values: __m256) -> __m256d {
    _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(values))
}

impl Lanes<f64> for Doubles {
    #[inline(always)]
    fn load(values: &Group<f64>) -> Self {
        let (fours, _) = values.as_chunks::<4>();
        // SAFETY: the processor has it, and four f64 are a vector.
        unsafe {
            Self([
                _mm256_loadu_pd(fours[0].as_ptr()),
                _mm256_loadu_pd(fours[1].as_ptr()),
                _mm256_loadu_pd(fours[2].as_ptr()),
                _mm256_loadu_pd(fours[3].as_ptr()),
            ])
        }
    }

    #[inline(always)]
    fn store(self) -> Group<f64> {
        let mut values = [0.0; 16];
        let (fours, _) = values.as_chunks_mut::<4>();
        for (four, vector) in fours.iter_mut().zip(self.0) {
            // SAFETY: the processor has it, and four f64 are a vector.
            unsafe { _mm256_storeu_pd(four.as_mut_ptr(), vector) };
        }
        values
    }

    #[inline(always)]
    fn splat(value: f64) -> Self {
        // SAFETY: the processor has it.
        Self([unsafe { _mm256_set1_pd(value) }; 4])
    }

    #[inline(always)]
    fn add_products(self, other: Self, sums: &mut Partials) {
        (self * other).add_to(sums);
    }

    #[inline(always)]
    fn add_to(self, sums: &mut Partials) {
        let (fours, _) = sums.as_chunks_mut::<4>();
        let Self([first, second, third, last]) = self;
        for (four, (low, high)) in fours.iter_mut().zip([(first, third), (second, last)]) {
            // SAFETY: the processor has them, and four f64 are a vector.
            unsafe {
                let sum = _mm256_add_pd(_mm256_loadu_pd(four.as_ptr()), low);
                _mm256_storeu_pd(four.as_mut_ptr(), _mm256_add_pd(sum, high));
            }
        }
    }
}

impl<const UNPACKED: bool> Add for Singles<UNPACKED> {
    type Output = Self;

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for i in 0..2 {
            // SAFETY: the processor has it.
            self.0[i] = unsafe { _mm256_add_ps(self.0[i], other.0[i]) };
        }
        self
    }
}

impl<const UNPACKED: bool> Sub for Singles<UNPACKED> {
    type Output = Self;

    #[inline(always)]
    fn sub(mut self, other: Self) -> Self {
        for i in 0..2 {
            // SAFETY: the processor has it.
            self.0[i] = unsafe { _mm256_sub_ps(self.0[i], other.0[i]) };
        }
        self
    }
}

impl<const UNPACKED: bool> Mul for Singles<UNPACKED> {
    type Output = Self;

    #[inline(always)]
    fn mul(mut self, other: Self) -> Self {
        for i in 0..2 {
            // SAFETY: the processor has it.
            self.0[i] = unsafe { _mm256_mul_ps(self.0[i], other.0[i]) };
        }
        self
    }
}

impl Add for Doubles {
    type Output = Self;

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for i in 0..4 {
            // SAFETY: the processor has it.
            self.0[i] = unsafe { _mm256_add_pd(self.0[i], other.0[i]) };
        }
        self
    }
}

impl Sub for Doubles {
    type Output = Self;

    #[inline(always)]
    fn sub(mut self, other: Self) -> Self {
        for i in 0..4 {
            // SAFETY: the processor has it.
            self.0[i] = unsafe { _mm256_sub_pd(self.0[i], other.0[i]) };
        }
        self
    }
}

impl Mul for Doubles {
    type Output = Self;

    #[inline(always)]
    fn mul(mut self, other: Self) -> Self {
        for i in 0..4 {
            // SAFETY: the processor has it.
            self.0[i] = unsafe { _mm256_mul_pd(self.0[i], other.0[i]) };
        }
        self
    }
}

/// Loads a group as it is: the compiler takes it to pieces where it sees the elements.
#[inline(always)]
pub(super) fn load<B: Bits>(bytes: &Group<B::Bytes>) -> Group<B> {
    let mut group = [B::default(); 16];
    let (from, to): (*const __m128i, *mut __m128i) = (bytes.as_ptr().cast(), group.as_mut_ptr().cast());
    for i in 0..size_of::<Group<B>>() / size_of::<__m128i>() {
        // SAFETY: every x86-64 has them, and both are a group long.
        unsafe { _mm_storeu_si128(to.add(i), _mm_loadu_si128(from.add(i))) };
    }
    group
}

/// Stores a group, past the caches or not.
///
/// # Safety
/// If it is to go past the caches, `out` is aligned to 16 bytes.
#[inline(always)]
pub(super) unsafe fn store<B: Bits>(group: &Group<B>, out: &mut Group<B::Bytes>, past_caches: bool) {
    let (from, to): (*const __m128i, *mut __m128i) = (group.as_ptr().cast(), out.as_mut_ptr().cast());
    for i in 0..size_of::<Group<B>>() / size_of::<__m128i>() {
        // SAFETY: every x86-64 has them, and both are a group long; the alignment is the caller's word.
        unsafe {
            let (vector, to) = (_mm_loadu_si128(from.add(i)), to.add(i));
            if past_caches { _mm_stream_si128(to, vector) } else { _mm_storeu_si128(to, vector) }
        }
    }
}

/// Makes what went past the caches visible to whoever is told afterwards that it is there.
#[inline(always)]
pub(super) fn fence() {
    // SAFETY: every x86-64 has it.
    unsafe { _mm_sfence() };
}
