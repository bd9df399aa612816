//! One pass over the groups of a strip: widen, calculate, count and narrow in registers.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use super::bits::{Bits, GROUPS, Group, Highest, STRIP, Stored};
use super::calculation::{Calculation, Cause};
use super::counters::{Squares, StripCounts};
use super::dtype::{Float, LanesOf, Values};
use super::memory::{Target, group};
use super::simd::{Lanes as _, Simd, Task, Work};

/// Nothing is counted.
pub(super) const UNCOUNTED: u8 = 0;
/// Squares are added up in working precision over [`BUNCH`] groups, then in f64: fewer conversions. Accurate unless
/// they overflow or underflow.
pub(super) const BUNCHED: u8 = 1;
/// Squares are added up in f64.
pub(super) const EXACT: u8 = 2;

/// Groups whose squares are added up in working precision: few enough to lose no digit that a report shows.
const BUNCH: usize = 8;

/// A strip of the input beside the base.
pub(super) enum Operand<'t, F: Float> {
    None,
    Stored(&'t Stored<F::Bits>),
    Values(&'t Values<F::Work>),
}

/// One calculation with all groups of a strip.
pub(super) struct Pass<'t, F: Float, C, const MODE: u8, const CAREFUL: bool> {
    pub(super) calculation: C,
    pub(super) base: Option<&'t Stored<F::Bits>>,
    pub(super) operand: Operand<'t, F>,
    pub(super) values: &'t mut Values<F::Work>,
    pub(super) bits: &'t mut [F::Bits; STRIP],
    /// Where the result goes, instead of `values` and `bits`, if this is the last pass.
    pub(super) target: Option<Target<'t, F::Bits>>,
    pub(super) cause: Cause,
    /// Whether the result's bits are needed, for counting or because this is the last pass.
    pub(super) narrows: bool,
    /// Whether the result belongs to an affine set, for which rounding errors are counted.
    pub(super) member: bool,
    /// Elements of the strip. Beyond them all bits stay 0.
    pub(super) len: usize,
}

impl<F: Float, C: Calculation<F>, const MODE: u8, const CAREFUL: bool> Pass<'_, F, C, MODE, CAREFUL> {
    /// Whether it takes its operand from a whole strip of the result's dtype and has no choice in counting and narrowing, as
    /// most passes do.
    fn is_plain(&self) -> bool {
        let operand = !C::BINARY || matches!(self.operand, Operand::Stored(_));
        let cause = MODE == UNCOUNTED || self.cause == Cause::Bits;
        !CAREFUL && operand && cause && self.narrows == (MODE != UNCOUNTED || self.target.is_some())
    }

    /// Runs the pass, compiled for its choices if it is a plain one: a loop without branches is twice as fast.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn run<M: Simd>(self, token: M) -> (bool, StripCounts<F::Bits>) {
        match (self.is_plain(), self.base.is_some(), self.target.is_some()) {
            (false, ..) => token.run(self),
            (true, true, true) => token.run(Plain::<_, true, true>(self)),
            (true, true, false) => token.run(Plain::<_, true, false>(self)),
            (true, false, true) => token.run(Plain::<_, false, true>(self)),
            (true, false, false) => token.run(Plain::<_, false, false>(self)),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn calculate<M: Simd, const PLAIN: bool>(self, token: M) -> (bool, StripCounts<F::Bits>) {
        let Self { calculation, base, operand, values, bits, mut target, cause, narrows, member, len } = self;
        // Known before the loop, they leave no choice in it.
        if PLAIN && C::BINARY && !matches!(operand, Operand::Stored(_)) {
            unreachable!("a plain pass reads a stored operand");
        }
        let narrows = if PLAIN { MODE != UNCOUNTED || target.is_some() } else { narrows };
        let cause = if PLAIN { Cause::Bits } else { cause };
        let mut highest = Highest::<F::Bits>::new();
        let mut counts = StripCounts::<F::Bits>::new();
        // Short loops are unrolled, which is of no use without squares.
        let bunch = if MODE == BUNCHED { BUNCH } else { GROUPS };
        for first in (0..GROUPS).step_by(bunch) {
            let mut squares = Squares::new(token);
            for i in first..first + bunch {
                let (stored, before) = read::<F, M>(token, base, values, bits, i);
                let (operand_bits, operand) = match operand {
                    Operand::Stored(operand) if C::BINARY => {
                        let bits = group::<F::Bits>(operand, i);
                        (bits, F::widen(token, &bits))
                    }
                    Operand::Values(values) if C::BINARY => {
                        ([F::Bits::default(); _], LanesOf::<F, M>::load(token, &values.as_chunks().0[i]))
                    }
                    _ => (stored, before),
                };
                let value = calculation.apply(token, before, operand);
                let mut result = match narrows {
                    false => [F::Bits::default(); _],
                    _ if CAREFUL => F::narrow_any(token, value),
                    _ => F::narrow(token, value),
                };
                // A negative factor makes zeros negative, which beyond the end is no change.
                if CAREFUL && 16 * (i + 1) > len {
                    result = truncated(result, len.saturating_sub(16 * i));
                }
                highest = highest.with(result);
                if MODE != UNCOUNTED {
                    let delta = match cause {
                        Cause::Bits => operand_bits,
                        Cause::Values => nonzero::<F>(&calculation.delta(token, before, operand).store()),
                        Cause::Changes => different::<F>(&stored, &result),
                    };
                    counts.count_bits(&stored, &result, &delta);
                }
                if MODE == BUNCHED {
                    squares.add_before(before);
                } else if MODE == EXACT {
                    counts.add_before(before);
                }
                if MODE != UNCOUNTED && C::BINARY {
                    if MODE == BUNCHED {
                        squares.add_change(before, value);
                    } else {
                        counts.add_change(before, value);
                    }
                }
                if MODE == EXACT && C::SCALES && member {
                    counts.count_fallen(&stored, &result, F::MIN_NORMAL);
                    counts.add_error(value, F::widen(token, &result));
                }
                write::<F, M>(&mut target, values, bits, i, value, &result);
            }
            if MODE == BUNCHED {
                counts.add_squares(&squares);
            }
        }
        (highest.below(F::INFINITY), counts)
    }
}

impl<F: Float, C: Calculation<F>, const MODE: u8, const CAREFUL: bool> Task
    for Pass<'_, F, C, MODE, CAREFUL>
{
    type Output = (bool, StripCounts<F::Bits>);

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn work<M: Simd>(self, token: M) -> Self::Output {
        self.calculate::<M, false>(token)
    }
}

/// A pass that [is plain](Pass::is_plain), with its base stored or not, and its result stored or not.
struct Plain<P, const BASE: bool, const TARGET: bool>(P);

impl<F: Float, C: Calculation<F>, const MODE: u8, const CAREFUL: bool, const BASE: bool, const TARGET: bool>
    Task for Plain<Pass<'_, F, C, MODE, CAREFUL>, BASE, TARGET>
{
    type Output = (bool, StripCounts<F::Bits>);

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn work<M: Simd>(self, token: M) -> Self::Output {
        let Self(Pass { base, target, .. }) = &self;
        if base.is_some() != BASE || target.is_some() != TARGET {
            unreachable!("it was chosen by them");
        }
        self.0.calculate::<M, true>(token)
    }
}

/// Zeroes the elements of a strip where `kept` is 0.
pub(super) struct Zeroing<'t, F: Float, const MODE: u8> {
    pub(super) base: Option<&'t Stored<F::Bits>>,
    pub(super) kept: &'t [F::Bits; STRIP],
    pub(super) values: &'t mut Values<F::Work>,
    pub(super) bits: &'t mut [F::Bits; STRIP],
    pub(super) target: Option<Target<'t, F::Bits>>,
}

impl<F: Float, const MODE: u8> Task for Zeroing<'_, F, MODE> {
    type Output = (bool, StripCounts<F::Bits>);

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn work<M: Simd>(self, token: M) -> Self::Output {
        let Self { base, kept, values, bits, mut target } = self;
        let mut highest = Highest::<F::Bits>::new();
        let mut counts = StripCounts::<F::Bits>::new();
        for i in 0..GROUPS {
            let (stored, before) = read::<F, M>(token, base, values, bits, i);
            let kept: &Group<F::Bits> = &kept.as_chunks().0[i];
            let mut after = before.store();
            for (value, kept) in after.iter_mut().zip(kept) {
                *value = if *kept == F::Bits::default() { F::Work::ZERO } else { *value };
            }
            let after = LanesOf::<F, M>::load(token, &after);
            let mut result = stored;
            if MODE == UNCOUNTED {
                result = F::narrow_any(token, after);
            } else {
                for (bits, kept) in result.iter_mut().zip(kept) {
                    *bits = *bits & *kept;
                }
                counts.count_bits(&stored, &result, &different::<F>(&stored, &result));
                counts.add_before(before);
                counts.add_change(before, after);
            }
            highest = highest.with(result);
            write::<F, M>(&mut target, values, bits, i, after, &result);
        }
        (highest.below(F::INFINITY), counts)
    }
}

/// Reads a group of the base, or of the step before.
#[cfg_attr(not(debug_assertions), inline(always))]
fn read<F: Float, M: Simd>(
    token: M,
    base: Option<&Stored<F::Bits>>,
    values: &Values<F::Work>,
    bits: &[F::Bits; STRIP],
    i: usize,
) -> (Group<F::Bits>, LanesOf<F, M>) {
    match base {
        Some(base) => {
            let stored = group::<F::Bits>(base, i);
            (stored, F::widen(token, &stored))
        }
        None => (bits.as_chunks().0[i], LanesOf::<F, M>::load(token, &values.as_chunks().0[i])),
    }
}

/// Writes a group of the result, or for the next step.
#[cfg_attr(not(debug_assertions), inline(always))]
fn write<F: Float, M: Simd>(
    target: &mut Option<Target<'_, F::Bits>>,
    values: &mut Values<F::Work>,
    bits: &mut [F::Bits; STRIP],
    i: usize,
    value: LanesOf<F, M>,
    result: &Group<F::Bits>,
) {
    if let Some(target) = target {
        target.put(i, result);
    } else {
        values.as_chunks_mut().0[i] = value.store();
        bits.as_chunks_mut().0[i] = *result;
    }
}

/// The first `n` elements, and zeros.
#[cold]
#[inline(never)]
fn truncated<B: Bits>(mut group: Group<B>, n: usize) -> Group<B> {
    group[n..].fill(B::default());
    group
}

/// 1 for each value that is not 0.
#[cfg_attr(not(debug_assertions), inline(always))]
fn nonzero<F: Float>(values: &Group<F::Work>) -> Group<F::Bits> {
    let mut nonzero = [F::Bits::default(); _];
    for (nonzero, value) in nonzero.iter_mut().zip(values) {
        *nonzero = (*value != F::Work::ZERO).into();
    }
    nonzero
}

/// 1 for each element whose bits differ.
#[cfg_attr(not(debug_assertions), inline(always))]
fn different<F: Float>(before: &Group<F::Bits>, after: &Group<F::Bits>) -> Group<F::Bits> {
    let mut different = [F::Bits::default(); _];
    for i in 0..different.len() {
        different[i] = (before[i] != after[i]).into();
    }
    different
}
