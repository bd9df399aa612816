//! LERP and SLERP: the weights that two donors are mixed with.
//!
//! SLERP (Shoemake, 1985) is taken over the flattened tensors as they are, not normalised: a · sin((1−t)θ)/sin θ +
//! b · sin(tθ)/sin θ, θ the angle between them. Tensors that are (nearly) parallel, zero or not finite have no such
//! arc and are mixed as LERP.

use super::bits::{group, whole};
use super::float::{STRIP, Work, decode};
use super::lanes::{GROUPS, Lanes, Machine, Partials, Plain};
#[cfg(target_arch = "x86_64")]
use super::wide::Wide;
use crate::checkpoint::Dtype;

/// Elements that are summed up on their own, before the sums are added up in ascending order.
pub(super) const BLOCK: usize = 65_536;

/// How near to ±1 the cosine may come before SLERP is LERP.
const PARALLEL: f64 = 1.0 - 1e-6;

/// The sums that an angle follows from, over any number of elements.
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

/// The weights of a and b in a SLERP, or `None` where it has to be a LERP.
pub(super) fn slerp(sums: &Sums, ratio: f64) -> Option<(f64, f64)> {
    let norms = sums.a_square.sqrt() * sums.b_square.sqrt();
    let cosine = sums.dot / norms;
    // A norm of 0 makes it NaN, and so does one that is not finite: only a number in between is an angle.
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
    /// Adds the elements that follow in the block: whole strips, and whatever is left at the tensor's end.
    #[cfg_attr(
        target_arch = "x86_64",
        expect(unsafe_code, reason = "instructions that were asked for at run time")
    )]
    pub(super) fn feed(&mut self, a: (Dtype, &[u8]), b: (Dtype, &[u8])) {
        #[cfg(target_arch = "x86_64")]
        if Wide::is_here() {
            #[target_feature(enable = "avx2,f16c,fma")]
            fn wide(sums: &mut BlockSums, a: (Dtype, &[u8]), b: (Dtype, &[u8])) {
                sums.strips::<Wide>(a, b);
            }
            // SAFETY: the processor has AVX2, F16C and FMA, the only features that `wide` is compiled for.
            return unsafe { wide(self, a, b) };
        }
        self.strips::<Plain>(a, b);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each set of instructions")]
    fn strips<M: Machine>(&mut self, a: (Dtype, &[u8]), b: (Dtype, &[u8])) {
        let (a_width, b_width) = (a.0.bitsize() / 8, b.0.bitsize() / 8);
        let strips = a.1.chunks(STRIP * a_width).zip(b.1.chunks(STRIP * b_width));
        let (mut a_values, mut b_values) = ([f32::ZERO; STRIP], [f32::ZERO; STRIP]);
        let mut sums = *self;
        for (a_bytes, b_bytes) in strips {
            match (a.0, b.0, whole::<u16>(a_bytes), whole::<u16>(b_bytes)) {
                (Dtype::BF16, Dtype::BF16, Some(a), Some(b)) => {
                    for i in 0..GROUPS {
                        sums.add(M::widen_brain(&group::<u16>(a, i)), M::widen_brain(&group::<u16>(b, i)));
                    }
                }
                (Dtype::F16, Dtype::F16, Some(a), Some(b)) => {
                    for i in 0..GROUPS {
                        sums.add(M::widen_half(&group::<u16>(a, i)), M::widen_half(&group::<u16>(b, i)));
                    }
                }
                _ => {
                    // Zeros beyond the end change no sum.
                    decode::<M, _>(a.0, a_bytes, &mut a_values);
                    decode::<M, _>(b.0, b_bytes, &mut b_values);
                    for (a, b) in a_values.as_chunks().0.iter().zip(b_values.as_chunks().0) {
                        sums.add(M::Halves::load(a), M::Halves::load(b));
                    }
                }
            }
        }
        *self = sums;
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
