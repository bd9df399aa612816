//! Sixteen elements at a time, in registers: what the calculations that nearly all programs are made of is written in.
//!
//! A [`Machine`] is a set of instructions. Compilers take arrays of sixteen to pieces, and do not always put them
//! together again: where it matters, a machine names its instructions.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use std::ops::{Add, Mul, Sub};

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use super::float::{STRIP, Work, brain_to_single, single_to_brain};

/// As many as are worked on at a time.
pub(super) type Group<T> = [T; 16];

/// So many are a strip.
pub(super) const GROUPS: usize = STRIP / size_of::<Group<u8>>();

/// Sums in f64 over every eighth element: an order that vectors can keep.
pub(super) type Partials = [f64; 8];

/// A group's values, in registers.
pub(super) trait Lanes<W>:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    fn load(values: &Group<W>) -> Self;
    fn store(self) -> Group<W>;
    fn splat(value: W) -> Self;
    /// Adds each times the other's to its sum: rounds the product, and the sum.
    fn add_products(self, other: Self, sums: &mut Partials);
    /// Adds each to its sum.
    fn add_to(self, sums: &mut Partials);
}

/// Work in a function of its own, compiled for a machine's instructions.
///
/// A compiler that sees too much at once keeps what a loop needs in memory; each loop that has to be fast is a task.
pub(super) trait Task<M> {
    type Made;
    /// Always inlined in release builds, or it lacks the instructions.
    fn work(self) -> Self::Made;
}

/// The instructions that code is compiled for.
pub(super) trait Machine: Sized {
    /// Does the work with these instructions.
    fn run<T: Task<Self>>(task: T) -> T::Made;
    /// What F16 are worked on in.
    type Halves: Lanes<f32>;
    /// What BF16 are worked on in.
    type Brains: Lanes<f32>;
    /// What F32 are worked on in.
    type Doubles: Lanes<f64>;
    /// Exact.
    fn widen_half(bits: &Group<u16>) -> Self::Halves;
    /// To nearest, ties to even.
    fn narrow_half(values: Self::Halves) -> Group<u16>;
    /// Exact.
    fn widen_brain(bits: &Group<u16>) -> Self::Brains;
    /// To nearest, ties to even; of no use for NaNs that are not widened BF16.
    fn narrow_brain(values: Self::Brains) -> Group<u16>;
    /// Exact.
    fn widen_single(bits: &Group<u32>) -> Self::Doubles;
    /// To nearest, ties to even.
    fn narrow_single(values: Self::Doubles) -> Group<u32>;
}

/// What every processor of the platform has.
pub(super) enum Plain {}

impl Machine for Plain {
    #[inline(never)]
    fn run<T: Task<Self>>(task: T) -> T::Made {
        task.work()
    }

    type Halves = Array<f32>;
    type Brains = Array<f32>;
    type Doubles = Array<f64>;

    #[inline(always)]
    fn widen_half(bits: &Group<u16>) -> Array<f32> {
        let mut values = [0.0; _];
        bits.reinterpret_cast::<f16>().convert_to_f32_slice(&mut values);
        Array(values)
    }

    #[inline(always)]
    fn narrow_half(Array(values): Array<f32>) -> Group<u16> {
        let mut bits = [0; _];
        bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(&values);
        bits
    }

    #[inline(always)]
    fn widen_brain(bits: &Group<u16>) -> Array<f32> {
        Array(gather(|i| brain_to_single(bits[i])))
    }

    #[inline(always)]
    fn narrow_brain(Array(values): Array<f32>) -> Group<u16> {
        gather(|i| single_to_brain(values[i].to_bits()))
    }

    #[inline(always)]
    fn widen_single(bits: &Group<u32>) -> Array<f64> {
        Array(gather(|i| f64::from(f32::from_bits(bits[i]))))
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
    fn narrow_single(Array(values): Array<f64>) -> Group<u32> {
        gather(|i| (values[i] as f32).to_bits())
    }
}

/// Lanes that are left to the compiler.
#[derive(Clone, Copy)]
pub(super) struct Array<W>(pub(super) Group<W>);

impl<W: Work> Lanes<W> for Array<W> {
    #[inline(always)]
    fn load(values: &Group<W>) -> Self {
        Self(*values)
    }

    #[inline(always)]
    fn store(self) -> Group<W> {
        self.0
    }

    #[inline(always)]
    fn splat(value: W) -> Self {
        Self([value; _])
    }

    #[inline(always)]
    fn add_products(self, other: Self, sums: &mut Partials) {
        for first in [0, sums.len()] {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum += self.0[first + lane].to_f64() * other.0[first + lane].to_f64();
            }
        }
    }

    #[inline(always)]
    fn add_to(self, sums: &mut Partials) {
        for first in [0, sums.len()] {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum += self.0[first + lane].to_f64();
            }
        }
    }
}

impl<W: Work> Add for Array<W> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(gather(|i| self.0[i] + other.0[i]))
    }
}

impl<W: Work> Sub for Array<W> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(gather(|i| self.0[i] - other.0[i]))
    }
}

impl<W: Work> Mul for Array<W> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(gather(|i| self.0[i] * other.0[i]))
    }
}

/// An array of what `element` says of each index. The compiler vectorises this, but not [`array::from_fn`].
#[inline(always)]
pub(super) fn gather<T: Copy + Default, const N: usize>(element: impl Fn(usize) -> T) -> [T; N] {
    let mut elements = [T::default(); N];
    for (n, slot) in elements.iter_mut().enumerate() {
        *slot = element(n);
    }
    elements
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::super::float::{Brain, Half, Single, Stored};
    use super::super::wide::Wide;
    use super::*;

    /// What each machine makes of the same: sums of products, values and bits.
    fn made<M: Machine, S: Stored>(a: &Group<S::Work>, b: &Group<S::Work>) -> (Partials, Vec<f64>, Vec<u32>) {
        let mut sums: Partials = [0.1, -0.2, 0.3, -1e9, 5.0, 1e-9, 7.0, -8.0];
        let (a, b) = (S::Lanes::<M>::load(a), S::Lanes::<M>::load(b));
        a.add_products(b, &mut sums);
        a.add_products(a, &mut sums);
        b.add_to(&mut sums);
        let value = (a - b) * S::Lanes::splat(S::Work::from_f64(0.1)) + b;
        let bits = S::narrow::<M>(value).map(Into::into).to_vec();
        (sums, value.store().map(Work::to_f64).to_vec(), bits)
    }

    #[track_caller]
    fn check<S: Stored>(a: &Group<f64>, b: &Group<f64>) {
        let (a, b) = (a.map(S::Work::from_f64), b.map(S::Work::from_f64));
        assert_eq!(made::<Wide, S>(&a, &b), made::<Plain, S>(&a, &b));
    }

    proptest! {
        #[test]
        fn machines_agree(a in prop::array::uniform16(-1e4..1e4), b in prop::array::uniform16(-1e-3..1e-3)) {
            if Wide::is_here() {
                check::<Half>(&a, &b);
                check::<Brain>(&a, &b);
                check::<Single>(&a, &b);
            }
        }
    }
}
