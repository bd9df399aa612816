//! [`Tally`]: what is counted while a program runs. Sums are taken in one fixed order.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use super::bits::Bits;
use super::float::{Machine, STRIP, Stored, Values, Work};
use super::recipe::Member;

/// What one action did to some elements.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) changed: u64,
    pub(super) deltas: u64,
    pub(super) lost: u64,
    /// Σ (after − before)².
    pub(super) change_square: f64,
    /// Σ before².
    pub(super) before_square: f64,
    /// Σ (rounded − exact)², for members of affine sets.
    pub(super) error_square: f64,
    /// Σ exact², for members of affine sets.
    pub(super) exact_square: f64,
    pub(super) scales: u64,
    pub(super) underflowed: u64,
}

/// What happened to some elements of one tensor.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outcome {
    /// One for each step of the recipe; empty when nobody counts.
    pub(super) steps: Vec<Tally>,
    /// Results that are not finite although every live input is: how many, and the lowest index.
    pub(super) overflow: Option<(u64, u64)>,
    /// Results that are not finite because an input is not.
    pub(super) passed: u64,
}

/// A strip before and after one step, in working precision and as it is stored. Beyond a tensor's end all is 0.
pub(super) struct Strip<'s, S: Stored> {
    pub(super) before: &'s Values<S::Work>,
    pub(super) after: &'s Values<S::Work>,
    pub(super) before_bits: &'s [S::Bits; STRIP],
    pub(super) after_bits: &'s [S::Bits; STRIP],
}

impl Tally {
    /// Counts changes of bits. An element that is `meant` to change (1, else 0) and does not is lost.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn count_bits<B: Bits>(
        &mut self,
        before: &[B; STRIP],
        after: &[B; STRIP],
        meant: &[B; STRIP],
    ) {
        // Counted in numbers as wide as an element, which hold all of a strip, so that vectors hold more of them.
        let (mut unchanged, mut deltas, mut lost) = (B::default(), B::default(), B::default());
        for i in 0..STRIP {
            let same = B::from(before[i] == after[i]);
            unchanged += same;
            deltas += meant[i];
            lost += meant[i] & same;
        }
        self.changed += STRIP as u64 - u64::from(unchanged.into());
        self.deltas += u64::from(deltas.into());
        self.lost += u64::from(lost.into());
    }

    /// Adds the sums of a scaling: the change is (factor − 1) times what there was.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn scaled<S: Stored>(&mut self, strip: &Strip<'_, S>, factor: f64) {
        let before = strip.before.as_chunks::<8>().0;
        let square = sum_of_squares(|i, lane| before[i][lane].to_f64());
        self.before_square += square;
        self.change_square += (factor - 1.0) * (factor - 1.0) * square;
    }

    /// Adds the sums of any change.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn moved<S: Stored>(&mut self, strip: &Strip<'_, S>) {
        // One sum after the other: together, compilers make pairs of them instead of rows.
        let (before, after) = (strip.before.as_chunks::<8>().0, strip.after.as_chunks::<8>().0);
        self.change_square += sum_of_squares(|i, lane| (after[i][lane] - before[i][lane]).to_f64());
        self.before_square += sum_of_squares(|i, lane| before[i][lane].to_f64());
    }

    /// Counts what rounding does to the scales or biases of an affine set, `n` of them.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn count_member<M: Machine, S: Stored>(
        &mut self,
        strip: &Strip<'_, S>,
        member: Member,
        n: usize,
    ) {
        let mut rounded = [S::Work::ZERO; STRIP];
        S::decode::<M>(strip.after_bits, &mut rounded);
        let (inexact, exact) = (rounded.as_chunks::<8>().0, strip.after.as_chunks::<8>().0);
        self.error_square += sum_of_squares(|i, lane| (inexact[i][lane] - exact[i][lane]).to_f64());
        self.exact_square += sum_of_squares(|i, lane| exact[i][lane].to_f64());
        if member == Member::Scales {
            let mut fell = 0;
            for (before, after) in strip.before.iter().zip(&rounded) {
                fell += u32::from(before.abs() >= S::NORMAL && after.abs() < S::NORMAL);
            }
            self.scales += n as u64;
            self.underflowed += u64::from(fell);
        }
    }

    /// Adds what was counted in the elements that follow.
    pub(super) fn add(&mut self, next: &Self) {
        self.changed += next.changed;
        self.deltas += next.deltas;
        self.lost += next.lost;
        self.change_square += next.change_square;
        self.before_square += next.before_square;
        self.error_square += next.error_square;
        self.exact_square += next.exact_square;
        self.scales += next.scales;
        self.underflowed += next.underflowed;
    }
}

impl Outcome {
    /// Nothing yet, for a recipe of so many steps.
    pub(super) fn new(steps: usize) -> Self {
        Self { steps: vec![Tally::default(); steps], ..Self::default() }
    }

    /// Adds what happened to the elements that follow.
    pub(super) fn add(&mut self, next: &Self) {
        for (tally, next) in self.steps.iter_mut().zip(&next.steps) {
            tally.add(next);
        }
        self.overflow = match (self.overflow, next.overflow) {
            (Some((count, first)), Some((more, _))) => Some((count + more, first)),
            (one, other) => one.or(other),
        };
        self.passed += next.passed;
    }
}

/// Σ x² over a strip in f64: eight sums over every eighth element, an order that vectors can keep, added up from the
/// first to the last.
#[cfg_attr(not(debug_assertions), inline(always))]
fn sum_of_squares(value: impl Fn(usize, usize) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    for i in 0..STRIP / 8 {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let value = value(i, lane);
            *sum += value * value;
        }
    }
    sums.iter().sum()
}
