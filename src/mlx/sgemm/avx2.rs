//! The product in vectors of eight.
//!
//! Four rows of W are multiplied with three of x at a time: twelve sums in registers. Each sum has eight lanes, which are
//! added up at the end of every block of its length.

use std::arch::x86_64::{
    __m256, _MM_HINT_T0, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehl_ps, _mm_prefetch, _mm_shuffle_ps,
    _mm256_castps256_ps128, _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps,
};

use super::product::Product;

/// Rows of W that are taken together.
pub(super) const WEIGHTS: usize = 4;
/// Rows of x that are taken together.
const ROWS: usize = 3;
const LANES: usize = 8;
/// Maximum number of elements in a block of a sum: as many of each row of x as stay in a first-level cache.
const BLOCK: usize = 512;
/// Rows of W by which memory is prefetched.
const AHEAD: usize = 2 * WEIGHTS;

/// Whether this processor has the instructions.
pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Columns `from..to` of y.
///
/// # Safety
/// Matrices as large as the numbers say, and a processor with AVX2 and FMA ([`is_there`]).
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn columns(product: &Product, from: usize, to: usize) {
    let mut column = from;
    while column < to {
        let count = (to - column).min(WEIGHTS);
        // SAFETY: the caller's promise.
        unsafe {
            match count {
                1 => weights::<1>(product, column),
                2 => weights::<2>(product, column),
                3 => weights::<3>(product, column),
                _ => weights::<WEIGHTS>(product, column),
            }
        }
        column += count;
    }
}

/// W rows of W, from `column` on, against all of x.
#[target_feature(enable = "avx2,fma")]
unsafe fn weights<const W: usize>(product: &Product, column: usize) {
    let mut row = 0;
    while row < product.m {
        let count = (product.m - row).min(ROWS);
        // SAFETY: the caller's promise.
        unsafe {
            match count {
                1 => tile::<W, 1>(product, column, row),
                2 => tile::<W, 2>(product, column, row),
                _ => tile::<W, ROWS>(product, column, row),
            }
        }
        row += count;
    }
}

/// W rows of W from `column` on against X rows of x from `row` on.
#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const W: usize, const X: usize>(product: &Product, column: usize, row: usize) {
    let Product { x, ldx, w, ldw, y, ldy, k, .. } = *product;
    let block = k.div_ceil(k.div_ceil(BLOCK).max(1)).next_multiple_of(LANES);
    // SAFETY: the caller's promise: row + X ≤ m and column + W ≤ n.
    unsafe {
        let (x, w) = (x.add(row * ldx), w.add(column * ldw));
        let mut totals = [[0.0_f32; X]; W];
        let mut done = 0;
        while done < k {
            let end = k.min(done + block);
            let mut sums = [[_mm256_setzero_ps(); X]; W];
            let mut at = done;
            while at + LANES <= end {
                step(&mut sums, x.add(at), ldx, w.add(at), ldw);
                // The first tile of these weights prefetches later ones; a prefetch beyond the end does no harm.
                if row == 0 && at.is_multiple_of(2 * LANES) {
                    for weight in 0..W {
                        _mm_prefetch::<_MM_HINT_T0>(w.wrapping_add((AHEAD + weight) * ldw + at).cast());
                    }
                }
                at += LANES;
            }
            if at < end {
                let mut rest = [[0.0; LANES]; X];
                for (row, rest) in rest.iter_mut().enumerate() {
                    x.add(row * ldx + at).copy_to_nonoverlapping(rest.as_mut_ptr(), end - at);
                }
                let mut weights = [[0.0; LANES]; W];
                for (weight, rest) in weights.iter_mut().enumerate() {
                    w.add(weight * ldw + at).copy_to_nonoverlapping(rest.as_mut_ptr(), end - at);
                }
                step(&mut sums, rest.as_ptr().cast(), LANES, weights.as_ptr().cast(), LANES);
            }
            for (totals, sums) in totals.iter_mut().zip(sums) {
                for (total, sum) in totals.iter_mut().zip(sums) {
                    *total += added(sum);
                }
            }
            done = end;
        }
        for (weight, totals) in totals.iter().enumerate() {
            for (number, total) in totals.iter().enumerate() {
                *y.add((row + number) * ldy + column + weight) = *total;
            }
        }
    }
}

/// Eight elements of each row.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn step<const W: usize, const X: usize>(
    sums: &mut [[__m256; X]; W],
    x: *const f32,
    ldx: usize,
    w: *const f32,
    ldw: usize,
) {
    // SAFETY: the caller's promise: eight elements of each row.
    unsafe {
        let mut rows = [_mm256_setzero_ps(); X];
        for (row, values) in rows.iter_mut().enumerate() {
            *values = _mm256_loadu_ps(x.add(row * ldx));
        }
        for (weight, sums) in sums.iter_mut().enumerate() {
            let weight = _mm256_loadu_ps(w.add(weight * ldw));
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = _mm256_fmadd_ps(weight, row, *sum);
            }
        }
    }
}

/// The sum of the eight lanes: halves onto each other, three times.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn added(lanes: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps::<1>(lanes));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}
