//! [`Counters`]: what is counted while a program runs. Sums are taken in one fixed order.
//!
//! Eight interleaved sums in f64 go over the groups of a strip; they are added up at its end, and the strips of a tile
//! and the tiles of a tensor follow one another.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use super::bits::{Bits, Group, STRIP};
use super::simd::{Lanes, Partials, Work};
use crate::execute::recipe::Member;

/// What one step did to some elements.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::execute) struct Counters {
    /// Elements whose stored bits differ after it.
    pub(in crate::execute) changed: u64,
    /// Elements that it is meant to change.
    pub(in crate::execute) deltas: u64,
    /// Elements that it is meant to change, and that rounding leaves as they were.
    pub(in crate::execute) lost: u64,
    /// Σ (after − before)².
    pub(in crate::execute) change_square: f64,
    /// Σ before².
    pub(in crate::execute) before_square: f64,
    /// Σ (rounded − exact)², for members of affine sets.
    pub(in crate::execute) error_square: f64,
    /// Σ exact², for members of affine sets.
    pub(in crate::execute) exact_square: f64,
    /// Scales of affine sets.
    pub(in crate::execute) scales: u64,
    /// Those of them that were normal numbers and became subnormal or zero.
    pub(in crate::execute) underflowed: u64,
}

/// What happened to some elements of one tensor.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::execute) struct Outcome {
    /// One for each step of the recipe; empty if nothing is counted.
    pub(in crate::execute) steps: Vec<Counters>,
    /// Results that are not finite although every live input is: their number and the lowest index.
    pub(in crate::execute) overflow: Option<(u64, u64)>,
    /// Results that are not finite because an input is not.
    pub(in crate::execute) passed: u64,
}

impl Counters {
    /// Adds what was counted of a strip that was scaled: the change is (factor − 1) times what there was.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_scaled<B: Bits>(&mut self, counts: &StripCounts<B>, factor: f64) {
        self.add_counts(counts);
        let square = counts.before_square.iter().sum::<f64>();
        self.before_square += square;
        self.change_square += (factor - 1.0) * (factor - 1.0) * square;
    }

    /// Adds what was counted of a strip that was changed in any way.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_moved<B: Bits>(&mut self, counts: &StripCounts<B>) {
        self.add_counts(counts);
        self.change_square += counts.change_square.iter().sum::<f64>();
        self.before_square += counts.before_square.iter().sum::<f64>();
    }

    /// Adds what was counted of a strip that was zeroed in part: exactly what changed was meant to.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_zeroed<B: Bits>(&mut self, counts: &StripCounts<B>) {
        self.add_moved(counts);
        self.deltas += STRIP as u64 - total(&counts.unchanged);
    }

    /// Adds what was counted of a strip of `n` scales or biases of an affine set.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_member<B: Bits>(&mut self, counts: &StripCounts<B>, member: Member, n: usize) {
        self.error_square += counts.error_square.iter().sum::<f64>();
        self.exact_square += counts.exact_square.iter().sum::<f64>();
        if member == Member::Scales {
            self.scales += n as u64;
            self.underflowed += total(&counts.fallen);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_counts<B: Bits>(&mut self, counts: &StripCounts<B>) {
        self.changed += STRIP as u64 - total(&counts.unchanged);
        self.deltas += total(&counts.deltas);
        self.lost += total(&counts.lost);
    }

    /// Adds what was counted in the elements that follow.
    pub(in crate::execute) fn add(&mut self, next: &Self) {
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
    /// Nothing yet, for a recipe with this number of steps.
    pub(in crate::execute) fn new(steps: usize) -> Self {
        Self { steps: vec![Counters::default(); steps], ..Self::default() }
    }

    /// Adds what happened to the elements that follow.
    pub(in crate::execute) fn add(&mut self, next: &Self) {
        for (counters, next) in self.steps.iter_mut().zip(&next.steps) {
            counters.add(next);
        }
        self.overflow = match (self.overflow, next.overflow) {
            (Some((count, first)), Some((more, _))) => Some((count + more, first)),
            (one, other) => one.or(other),
        };
        self.passed += next.passed;
    }
}

/// What is counted of a strip, by lanes of its groups. Counters are as wide as an element, which is enough for a strip,
/// so that a vector holds as many counters as elements.
pub(super) struct StripCounts<B: Bits> {
    unchanged: Group<B>,
    deltas: Group<B>,
    lost: Group<B>,
    fallen: Group<B>,
    before_square: Partials,
    change_square: Partials,
    error_square: Partials,
    exact_square: Partials,
}

/// Sums of squares over a few groups, in working precision: fewer conversions than adding up all of them in f64.
pub(super) struct Squares<L> {
    before: L,
    change: L,
}

impl<L> Squares<L> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new<W: Work>(token: L::Token) -> Self
    where
        L: Lanes<W>,
    {
        let nothing = L::splat(token, W::ZERO);
        Self { before: nothing, change: nothing }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_before<W: Work>(&mut self, before: L)
    where
        L: Lanes<W>,
    {
        self.before = self.before + before * before;
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_change<W: Work>(&mut self, before: L, after: L)
    where
        L: Lanes<W>,
    {
        let change = after - before;
        self.change = self.change + change * change;
    }
}

fn total<B: Bits>(counts: &Group<B>) -> u64 {
    counts.iter().map(|&n| u64::from(n.into())).sum()
}

impl<B: Bits> StripCounts<B> {
    /// Written out, because the arrays' own defaults are functions that are not always inlined.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new() -> Self {
        let (counts, sums) = ([B::default(); _], [0.0; _]);
        Self {
            unchanged: counts,
            deltas: counts,
            lost: counts,
            fallen: counts,
            before_square: sums,
            change_square: sums,
            error_square: sums,
            exact_square: sums,
        }
    }

    /// Counts changes of bits. Elements where the magnitude of `cause` is not 0 are meant to change.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn count_bits(&mut self, before: &Group<B>, after: &Group<B>, cause: &Group<B>) {
        for i in 0..before.len() {
            let same = B::from(before[i] == after[i]);
            let meant = B::from(cause[i] & B::MAGNITUDE != B::default());
            self.unchanged[i] += same;
            self.deltas[i] += meant;
            self.lost[i] += meant & same;
        }
    }

    /// Counts elements whose bits stay as they are.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn count_kept(&mut self, before: &Group<B>, after: &Group<B>) {
        for i in 0..before.len() {
            self.unchanged[i] += B::from(before[i] == after[i]);
        }
    }

    /// Adds the squares of the values before a step.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_before<W: Work>(&mut self, before: impl Lanes<W>) {
        before.add_products(before, &mut self.before_square);
    }

    /// Adds the squares of what a step changes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_change<W: Work, L: Lanes<W>>(&mut self, before: L, after: L) {
        let change = after - before;
        change.add_products(change, &mut self.change_square);
    }

    /// Adds the sums over a bunch of groups.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_squares<W: Work, L: Lanes<W>>(&mut self, squares: &Squares<L>) {
        squares.before.add_to(&mut self.before_square);
        squares.change.add_to(&mut self.change_square);
    }

    /// Whether the sums by [`add_squares`](Self::add_squares) over a strip are accurate: no square overflowed in working
    /// precision, and none that matters underflowed. Where no change is meant there is none; and if changes are not
    /// summed, they are a multiple of what was there before, which is then 0.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn squares_are_accurate<W: Work>(&self, changes_summed: bool) -> bool {
        let accurate = |squares: &Partials| {
            let sum = squares.iter().sum::<f64>();
            W::MIN_SQUARES <= sum && sum < f64::INFINITY
        };
        let nothing = total(&self.deltas) == 0;
        if changes_summed {
            accurate(&self.before_square) && (nothing || accurate(&self.change_square))
        } else {
            nothing || accurate(&self.before_square)
        }
    }

    /// Counts elements that were normal numbers, `least` or more, and no longer are.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn count_fallen(&mut self, before: &Group<B>, after: &Group<B>, least: B) {
        for i in 0..before.len() {
            let was = B::from(before[i] & B::MAGNITUDE >= least);
            self.fallen[i] += was & B::from(after[i] & B::MAGNITUDE < least);
        }
    }

    /// Adds the squares of the exact values and of their rounding errors.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_error<W: Work, L: Lanes<W>>(&mut self, exact: L, rounded: L) {
        let error = rounded - exact;
        error.add_products(error, &mut self.error_square);
        exact.add_products(exact, &mut self.exact_square);
    }
}
