//! LERP and SLERP: the weights of two donors in an interpolation.
//!
//! SLERP (Shoemake, 1985) is taken over the flattened tensors as they are, not normalised: a · sin((1−t)θ)/sin θ +
//! b · sin(tθ)/sin θ, θ the angle between them. Tensors that are (nearly) parallel, zero or not finite have no such
//! arc and are mixed as LERP.

use super::kernel::{GROUPS, Lanes, Partials, STRIP, Simd, Task, decode, group, run_widest, whole};
use crate::checkpoint::Dtype;

/// Elements of a block. Blocks are summed separately; their sums are added in ascending order.
pub(super) const BLOCK: usize = 65_536;

/// The cosine, positive or negative, from which on SLERP falls back to LERP.
const PARALLEL: f64 = 1.0 - 1e-6;

/// The sums that an angle is computed from, over any number of elements.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) dot: f64,
    pub(super) a_square: f64,
    pub(super) b_square: f64,
}

/// The sums of one block, fed strip by strip.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BlockSums {
    dot: Partials,
    a_square: Partials,
    b_square: Partials,
}

/// The weights of a and b in a LERP; `ratio` is b's.
pub(super) fn lerp(ratio: f64) -> (f64, f64) {
    (1.0 - ratio, ratio)
}

/// The weights of a and b in a SLERP, or `None` if it falls back to LERP.
pub(super) fn slerp(sums: &Sums, ratio: f64) -> Option<(f64, f64)> {
    let norms = sums.a_square.sqrt() * sums.b_square.sqrt();
    let cosine = sums.dot / norms;
    // Norms of 0 or infinity make the cosine NaN.
    if !norms.is_finite() || cosine.is_nan() || cosine.abs() >= PARALLEL {
        return None;
    }
    let angle = libm::acos(cosine);
    let sine = libm::sin(angle);
    Some((libm::sin((1.0 - ratio) * angle) / sine, libm::sin(ratio * angle) / sine))
}

impl Sums {
    /// Adds the block that follows.
    pub(super) fn add(&mut self, next: &Self) {
        self.dot += next.dot;
        self.a_square += next.a_square;
        self.b_square += next.b_square;
    }
}

impl BlockSums {
    /// Adds the elements that follow in the block: whole strips, and the rest at the tensor's end.
    pub(super) fn feed(&mut self, a: (Dtype, &[u8]), b: (Dtype, &[u8])) {
        run_widest(Feed { sums: self, a, b });
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each set of instructions")]
    fn add<L: Lanes<f32>>(&mut self, a: L, b: L) {
        a.add_products(b, &mut self.dot);
        a.add_products(a, &mut self.a_square);
        b.add_products(b, &mut self.b_square);
    }

    /// The block's sums.
    pub(super) fn total(&self) -> Sums {
        Sums {
            dot: self.dot.iter().sum(),
            a_square: self.a_square.iter().sum(),
            b_square: self.b_square.iter().sum(),
        }
    }
}

/// Adds elements of both donors to the sums of a block.
struct Feed<'f> {
    sums: &'f mut BlockSums,
    a: (Dtype, &'f [u8]),
    b: (Dtype, &'f [u8]),
}

impl Task for Feed<'_> {
    type Output = ();

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each set of instructions")]
    fn work<M: Simd>(self, token: M) {
        let Self { sums: total, a, b } = self;
        let strips = a.1.chunks(STRIP * a.0.bitsize() / 8).zip(b.1.chunks(STRIP * b.0.bitsize() / 8));
        let (mut a_values, mut b_values) = ([0f32; STRIP], [0f32; STRIP]);
        let mut sums = *total;
        for (a_bytes, b_bytes) in strips {
            match (a.0, b.0, whole::<u16>(a_bytes), whole::<u16>(b_bytes)) {
                (Dtype::BF16, Dtype::BF16, Some(a), Some(b)) => {
                    for i in 0..GROUPS {
                        let (a, b) = (group::<u16>(a, i), group::<u16>(b, i));
                        sums.add(token.widen_bf16(&a), token.widen_bf16(&b));
                    }
                }
                (Dtype::F16, Dtype::F16, Some(a), Some(b)) => {
                    for i in 0..GROUPS {
                        let (a, b) = (group::<u16>(a, i), group::<u16>(b, i));
                        sums.add(token.widen_f16(&a), token.widen_f16(&b));
                    }
                }
                _ => {
                    // Zeros beyond the end change no sum.
                    decode(token, a.0, a_bytes, &mut a_values);
                    decode(token, b.0, b_bytes, &mut b_values);
                    for (a, b) in a_values.as_chunks().0.iter().zip(b_values.as_chunks().0) {
                        sums.add(M::F32s::load(token, a), M::F32s::load(token, b));
                    }
                }
            }
        }
        *total = sums;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(a: &[f32], b: &[f32]) -> Sums {
        let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
        let mut block = BlockSums::default();
        block.feed((Dtype::F32, &bytes(a)), (Dtype::F32, &bytes(b)));
        block.total()
    }

    #[track_caller]
    fn check(a: &[f32], b: &[f32], ratio: f64, expected: Option<(f64, f64)>) {
        let close = |x: f64, y: f64| (x - y).abs() < 1e-12;
        match (slerp(&sums(a, b), ratio), expected) {
            (None, None) => {}
            (Some(got), Some(want)) => assert!(close(got.0, want.0) && close(got.1, want.1), "{got:?}"),
            (got, want) => panic!("{got:?} is not {want:?}"),
        }
    }

    #[test]
    fn a_quarter_turn_is_halved_at_half() {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        check(&[1.0, 0.0], &[0.0, 5.0], 0.5, Some((half, half)));
        check(&[1.0, 0.0], &[0.0, 1.0], 1.0 / 3.0, Some((3f64.sqrt() / 2.0, 0.5)));
    }

    #[test]
    fn parallel_zero_and_infinite_tensors_have_no_arc() {
        check(&[1.0, 2.0], &[2.0, 4.0], 0.5, None);
        check(&[1.0, 2.0], &[-1.0, -2.0], 0.5, None);
        check(&[0.0, 0.0], &[1.0, 2.0], 0.5, None);
        check(&[f32::INFINITY, 0.0], &[1.0, 2.0], 0.5, None);
        check(&[f32::NAN, 0.0], &[1.0, 2.0], 0.5, None);
        check(&[], &[], 0.5, None);
    }

    #[test]
    fn the_largest_numbers_have_an_angle_and_the_smallest_too() {
        check(&[f32::MAX, 0.0], &[0.0, f32::MAX], 0.5, Some((0.5f64.sqrt(), 0.5f64.sqrt())));
        check(&[f32::from_bits(1), 0.0], &[0.0, 1.0], 0.5, Some((0.5f64.sqrt(), 0.5f64.sqrt())));
    }
}
