//! [`Tally`]: what is counted while a program runs. Sums are taken in one fixed order.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use super::float::{Machine, STRIP, Stored, Values, Work};
use super::recipe::{Member, Step};

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
    /// Counts a strip: what changed, what should have, and the sums. `donor` is what an addition adds a multiple of.
    #[inline(always)]
    pub(super) fn count<S: Stored>(&mut self, strip: &Strip<'_, S>, donor: &Values<S::Work>, step: &Step) {
        let (before, bits) = (strip.before, (strip.before_bits, strip.after_bits));
        match step {
            Step::Scale(factor) if S::Work::from_f64(*factor) != S::Work::ONE => {
                self.count_bits::<S>(bits, |i| before[i] != S::Work::ZERO);
            }
            Step::Add { alpha, .. } => {
                let alpha = S::Work::from_f64(*alpha);
                self.count_bits::<S>(bits, |i| alpha * donor[i] != S::Work::ZERO);
            }
            Step::Scale(_) | Step::Zero(_) => self.count_bits::<S>(bits, |i| bits.0[i] != bits.1[i]),
        }
        // One sum after the other: together, compilers make pairs of them instead of rows.
        let (before, after) = (before.as_chunks::<8>().0, strip.after.as_chunks::<8>().0);
        self.change_square += sum_of_squares(|i, lane| (after[i][lane] - before[i][lane]).to_f64());
        self.before_square += sum_of_squares(|i, lane| before[i][lane].to_f64());
    }

    /// Counts changes of bits. An element that is `meant` to change and does not is lost.
    #[inline(always)]
    fn count_bits<S: Stored>(
        &mut self,
        (before, after): (&[S::Bits; STRIP], &[S::Bits; STRIP]),
        meant: impl Fn(usize) -> bool,
    ) {
        let (mut changed, mut deltas, mut lost) = (0, 0, 0);
        for i in 0..STRIP {
            let (same, meant) = (u32::from(before[i] == after[i]), u32::from(meant(i)));
            changed += 1 - same;
            deltas += meant;
            lost += meant & same;
        }
        self.changed += u64::from(changed);
        self.deltas += u64::from(deltas);
        self.lost += u64::from(lost);
    }

    /// Counts what rounding does to the scales or biases of an affine set, `n` of them.
    #[inline(always)]
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
#[inline(always)]
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
