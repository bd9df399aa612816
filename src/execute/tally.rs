//! [`Tally`]: what is counted while a program runs. Sums are taken in one fixed order.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use super::bits::Bits;
use super::float::{STRIP, Work};
use super::lanes::{Group, Lanes, Partials};
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

impl Tally {
    /// Adds what was counted of a strip that was scaled: the change is (factor − 1) times what there was.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_scaled<B: Bits>(&mut self, groups: &Groups<B>, factor: f64) {
        self.add_counts(groups);
        let square = groups.before_square.iter().sum::<f64>();
        self.before_square += square;
        self.change_square += (factor - 1.0) * (factor - 1.0) * square;
    }

    /// Adds what was counted of a strip that was changed in any way.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_moved<B: Bits>(&mut self, groups: &Groups<B>) {
        self.add_counts(groups);
        self.change_square += groups.change_square.iter().sum::<f64>();
        self.before_square += groups.before_square.iter().sum::<f64>();
    }

    /// Adds what was counted of a strip that was zeroed in part: exactly what changed was meant to.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_zeroed<B: Bits>(&mut self, groups: &Groups<B>) {
        self.add_moved(groups);
        self.deltas += STRIP as u64 - total(&groups.unchanged);
    }

    /// Adds what was counted of a strip of an affine set's scales or biases, or of none; it has `n` elements.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_member<B: Bits>(&mut self, groups: &Groups<B>, member: Member, n: usize) {
        self.error_square += groups.error_square.iter().sum::<f64>();
        self.exact_square += groups.exact_square.iter().sum::<f64>();
        if member == Member::Scales {
            self.scales += n as u64;
            self.underflowed += total(&groups.fallen);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_counts<B: Bits>(&mut self, groups: &Groups<B>) {
        self.changed += STRIP as u64 - total(&groups.unchanged);
        self.deltas += total(&groups.deltas);
        self.lost += total(&groups.lost);
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

/// What is counted of a strip in groups, by their lanes. Counted in numbers as wide as an element, which hold all of a
/// strip, so that vectors hold more of them.
pub(super) struct Groups<B: Bits> {
    unchanged: Group<B>,
    deltas: Group<B>,
    lost: Group<B>,
    fallen: Group<B>,
    not_finite: Group<B>,
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
    /// Nothing yet.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new<W: Work>() -> Self
    where
        L: Lanes<W>,
    {
        let nothing = L::splat(W::ZERO);
        Self { before: nothing, change: nothing }
    }

    /// Adds up what there was.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_before<W>(&mut self, before: L)
    where
        L: Lanes<W>,
    {
        self.before = self.before + before * before;
    }

    /// Adds up what changed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_change<W>(&mut self, before: L, after: L)
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

impl<B: Bits> Groups<B> {
    /// Nothing yet. Written out, because the arrays' own defaults are functions that are not always inlined.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new() -> Self {
        let (counts, sums) = ([B::default(); _], [0.0; _]);
        Self {
            unchanged: counts,
            deltas: counts,
            lost: counts,
            fallen: counts,
            not_finite: counts,
            before_square: sums,
            change_square: sums,
            error_square: sums,
            exact_square: sums,
        }
    }

    /// Counts changes of bits. Each element is meant to change of which `cause` is not 0.
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

    /// Counts what stays as it is, and what is not finite afterwards: not below `infinity`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn count_kept(&mut self, before: &Group<B>, after: &Group<B>, infinity: B) {
        for i in 0..before.len() {
            self.unchanged[i] += B::from(before[i] == after[i]);
            self.not_finite[i] += B::from(after[i] & B::MAGNITUDE >= infinity);
        }
    }

    /// How many are not finite.
    pub(super) fn not_finite(&self) -> u64 {
        total(&self.not_finite)
    }

    /// Adds up what there was.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_before<W>(&mut self, before: impl Lanes<W>) {
        before.add_products(before, &mut self.before_square);
    }

    /// Adds up what changed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_change<W, L: Lanes<W>>(&mut self, before: L, after: L) {
        let change = after - before;
        change.add_products(change, &mut self.change_square);
    }

    /// Adds the sums over a few groups.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_squares<W, L: Lanes<W>>(&mut self, squares: &Squares<L>) {
        squares.before.add_to(&mut self.before_square);
        squares.change.add_to(&mut self.change_square);
    }

    /// Whether what was added up of a strip by [`add_squares`](Self::add_squares) is right: no square was too large for
    /// the working precision, and none that counts too small. Where nothing is meant to change, nothing does; and if
    /// what changes is not summed up, it is a part of what there was, so that there was nothing.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn squares_are_right<W: Work>(&self, changes_summed: bool) -> bool {
        let right = |squares: &Partials| {
            let sum = squares.iter().sum::<f64>();
            W::LEAST_SQUARES <= sum && sum < f64::INFINITY
        };
        let nothing = total(&self.deltas) == 0;
        if changes_summed {
            right(&self.before_square) && (nothing || right(&self.change_square))
        } else {
            nothing || right(&self.before_square)
        }
    }

    /// Counts those that were normal numbers, `least` or more, and are not any more.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn count_fallen(&mut self, before: &Group<B>, after: &Group<B>, least: B) {
        for i in 0..before.len() {
            let was = B::from(before[i] & B::MAGNITUDE >= least);
            self.fallen[i] += was & B::from(after[i] & B::MAGNITUDE < least);
        }
    }

    /// Adds up what was to be, and what rounding did to it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add_error<W, L: Lanes<W>>(&mut self, exact: L, rounded: L) {
        let error = rounded - exact;
        error.add_products(error, &mut self.error_square);
        exact.add_products(exact, &mut self.exact_square);
    }
}
