//! [`Tally`]: what is counted while a program runs. Sums are taken in one fixed order.

use super::float::{Stored, Work};
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

/// A strip before and after one step, in working precision and as it is stored.
pub(super) struct Strip<'s, S: Stored> {
    pub(super) before: &'s [S::Work],
    pub(super) after: &'s [S::Work],
    pub(super) before_bits: &'s [S::Bits],
    pub(super) after_bits: &'s [S::Bits],
}

impl Tally {
    /// Counts a strip. An element whose `delta` is not 0 should have changed.
    #[inline]
    pub(super) fn count<S: Stored>(&mut self, strip: &Strip<'_, S>, delta: Option<&[S::Work]>) {
        let mut changed = 0;
        for (before, after) in strip.before_bits.iter().zip(strip.after_bits) {
            changed += u32::from(before != after);
        }
        self.changed += u64::from(changed);
        if let Some(delta) = delta {
            let (mut deltas, mut lost) = (0, 0);
            let bits = strip.before_bits.iter().zip(strip.after_bits);
            for ((before, after), delta) in bits.zip(delta) {
                let meant = *delta != S::Work::ZERO;
                deltas += u32::from(meant);
                lost += u32::from(meant && before == after);
            }
            self.deltas += u64::from(deltas);
            self.lost += u64::from(lost);
        } else {
            self.deltas += u64::from(changed);
        }
        self.change_square += sum_of_squares(strip.before, strip.after, |before, after| after - before);
        self.before_square += sum_of_squares(strip.before, strip.before, |before, _| before);
    }

    /// Counts what rounding does to the scales or biases of an affine set.
    pub(super) fn count_member<S: Stored>(&mut self, strip: &Strip<'_, S>, member: Member) {
        let mut rounded = vec![S::Work::ZERO; strip.after.len()];
        S::decode(strip.after_bits, &mut rounded);
        self.error_square += sum_of_squares(&rounded, strip.after, |rounded, exact| rounded - exact);
        self.exact_square += sum_of_squares(strip.after, strip.after, |exact, _| exact);
        if member == Member::Scales {
            self.scales += strip.after.len() as u64;
            let under = |value: &S::Work| value.abs() < S::NORMAL;
            let fell =
                strip.before.iter().zip(&rounded).filter(|(before, after)| !under(before) && under(after));
            self.underflowed += fell.count() as u64;
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

/// Σ f(x, y)² in f64: eight sums over every eighth element, added up from the first to the last.
#[inline]
fn sum_of_squares<W: Work>(xs: &[W], ys: &[W], f: impl Fn(W, W) -> W) -> f64 {
    let mut sums = [0.0; 8];
    let ((xs, x_rest), (ys, y_rest)) = (xs.as_chunks::<8>(), ys.as_chunks::<8>());
    for (x, y) in xs.iter().zip(ys) {
        for lane in 0..8 {
            let value = f(x[lane], y[lane]).to_f64();
            sums[lane] += value * value;
        }
    }
    for ((x, y), sum) in x_rest.iter().zip(y_rest).zip(&mut sums) {
        let value = f(*x, *y).to_f64();
        *sum += value * value;
    }
    sums.iter().sum()
}
