//! LERP and SLERP: the weights that two donors are mixed with.
//!
//! SLERP (Shoemake, 1985) is taken over the flattened tensors as they are, not normalised: a · sin((1−t)θ)/sin θ +
//! b · sin(tθ)/sin θ, θ the angle between them. Tensors that are (nearly) parallel, zero or not finite have no such
//! arc and are mixed as LERP.

use super::float::{Machine, Plain, STRIP, Work, decode};
#[cfg(target_arch = "x86_64")]
use super::wide::Wide;
use crate::checkpoint::Dtype;

/// Elements that are summed up on their own, before the sums are added up in ascending order.
pub(super) const BLOCK: usize = 65_536;

/// How near to ±1 the cosine may come before SLERP is LERP.
const PARALLEL: f64 = 1.0 - 1e-6;

/// Eight sums over every eighth element: an order that vectors can keep.
type Lanes = [f64; 8];

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
    dot: Lanes,
    a_square: Lanes,
    b_square: Lanes,
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
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
            #[target_feature(enable = "avx2,f16c")]
            fn wide(sums: &mut BlockSums, a: (Dtype, &[u8]), b: (Dtype, &[u8])) {
                sums.strips::<Wide>(a, b);
            }
            // SAFETY: the processor has AVX2 and F16C, the only features that `wide` is compiled for.
            return unsafe { wide(self, a, b) };
        }
        self.strips::<Plain>(a, b);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each set of instructions")]
    fn strips<M: Machine>(&mut self, a: (Dtype, &[u8]), b: (Dtype, &[u8])) {
        // Products of two f32 are exact in f64.
        let (mut a_values, mut b_values) = ([f32::ZERO; STRIP], [f32::ZERO; STRIP]);
        let (a_width, b_width) = (a.0.bitsize() / 8, b.0.bitsize() / 8);
        let [mut dot, mut a_square, mut b_square] = [self.dot, self.a_square, self.b_square];
        for (a_bytes, b_bytes) in a.1.chunks(STRIP * a_width).zip(b.1.chunks(STRIP * b_width)) {
            // Zeros beyond the end change no sum.
            decode::<M, _>(a.0, a_bytes, &mut a_values);
            decode::<M, _>(b.0, b_bytes, &mut b_values);
            for (eight_a, eight_b) in a_values.as_chunks::<8>().0.iter().zip(b_values.as_chunks::<8>().0) {
                for lane in 0..8 {
                    let (a, b) = (f64::from(eight_a[lane]), f64::from(eight_b[lane]));
                    dot[lane] += a * b;
                    a_square[lane] += a * a;
                    b_square[lane] += b * b;
                }
            }
        }
        *self = Self { dot, a_square, b_square };
    }

    /// The block's sums.
    pub(super) fn total(&self) -> Sums {
        let add_up = |lanes: &Lanes| lanes.iter().sum();
        Sums { dot: add_up(&self.dot), a_square: add_up(&self.a_square), b_square: add_up(&self.b_square) }
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
