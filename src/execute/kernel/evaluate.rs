//! [`Evaluator`]: applies a recipe to a strip, a pass over its groups for each step.
//!
//! A pass widens a group, calculates, counts and narrows in registers. The first pass reads the input's bytes and the
//! last one writes the result's, so that a recipe of one step is a single pass; values between two steps stay in a
//! first-level cache.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use super::bits::{Bits, GROUPS, Group, Highest, STRIP, Stored, load, store};
use super::counters::{Outcome, Squares, StripCounts};
use super::dtype::{Float, LanesOf, Values, decode};
use super::memory::{Target, group};
use super::overflow;
use super::simd::{Lanes as _, Simd, Task, Work};
use super::strip::Strip;
use crate::execute::recipe::{Member, Start, Step};

/// Nothing is counted.
const UNCOUNTED: u8 = 0;
/// Squares are added up in working precision over [`BUNCH`] groups, then in f64: fewer conversions. Accurate unless
/// they overflow or underflow.
const BUNCHED: u8 = 1;
/// Squares are added up in f64.
const EXACT: u8 = 2;

/// Groups whose squares are added up in working precision: few enough to lose no digit that a report shows.
const BUNCH: usize = 8;

/// What a strip is evaluated in.
pub(super) struct Evaluator<F: Float> {
    /// The values after the last step.
    values: Values<F::Work>,
    /// What they would be stored as, if steps are counted.
    bits: [F::Bits; STRIP],
    /// The values of an input that is no whole strip of the result's dtype.
    other: Values<F::Work>,
}

impl<F: Float> Evaluator<F> {
    pub(super) fn new() -> Self {
        let values = [F::Work::ZERO; STRIP];
        Self { values, bits: [F::Bits::default(); STRIP], other: values }
    }

    /// Makes a strip of a recipe that computes. Counts if `COUNT`; then `outcome` has counters for each step.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn evaluate<M: Simd, const COUNT: bool>(
        &mut self,
        token: M,
        strip: &Strip<'_>,
        out: &mut [u8],
        outcome: &mut Outcome,
    ) {
        let finite = if !COUNT {
            self.steps::<M, UNCOUNTED>(token, strip, out, outcome).0
        } else if bunches::<F>(strip) && self.steps::<M, BUNCHED>(token, strip, out, outcome) == (true, true)
        {
            true
        } else {
            self.steps::<M, EXACT>(token, strip, out, outcome).0
        };
        if !finite {
            overflow::find::<F>(strip, out, outcome);
        }
    }

    /// Applies all steps. Returns whether all results are finite, and whether they were counted accurately; if either is
    /// false in [`BUNCHED`] mode, nothing was counted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn steps<M: Simd, const MODE: u8>(
        &mut self,
        token: M,
        strip: &Strip<'_>,
        out: &mut [u8],
        outcome: &mut Outcome,
    ) -> (bool, bool) {
        let recipe = strip.recipe;
        let mut target = Target::whole(&mut *out, strip.past_caches);
        let direct = target.is_some();
        let mut finite = true;
        let (start, operand) = match recipe.start {
            Start::From(a) => (Some(a), None),
            Start::Mix { a, b, .. } => (Some(a), Some(b)),
            Start::Zeros | Start::InPlace => (None, None),
        };
        let mut base = start.and_then(|input| strip.whole::<F>(input));
        match (start, base) {
            (_, Some(_)) => {}
            (Some(input), None) => decode(token, recipe.inputs[input], strip.bytes(input), &mut self.values),
            (None, None) => {
                self.values.fill(F::Work::ZERO);
                self.bits.fill(F::Bits::default());
            }
        }
        let only_start = recipe.steps.is_empty();
        let narrows = MODE != UNCOUNTED || only_start;
        match (recipe.start, start) {
            (Start::Mix { weights, .. }, _) => {
                let mix = Mixed(F::Work::from_f64(weights.0), F::Work::from_f64(weights.1));
                let target = target.take_if(|_| only_start);
                finite =
                    self.pass::<M, _, UNCOUNTED>(token, strip, mix, base.take(), operand, target, narrows).0;
            }
            // A step that computes compares with the bits as they are, NaNs included.
            (Start::From(input), _) if recipe.inputs[input] == F::DTYPE && recipe.a_step_computes() => {
                if MODE != UNCOUNTED && base.is_none() {
                    load(strip.bytes(input), &mut self.bits);
                }
            }
            (Start::From(_), _) if MODE != UNCOUNTED || only_start => {
                let target = target.take_if(|_| only_start);
                finite = self
                    .pass::<M, _, UNCOUNTED>(token, strip, Unchanged, base.take(), None, target, narrows)
                    .0;
            }
            _ => {}
        }
        for (i, step) in recipe.steps.iter().enumerate() {
            let last = i + 1 == recipe.steps.len();
            let target = target.take_if(|_| last);
            let base = base.take();
            let counts;
            (finite, counts) = match step {
                Step::Scale(factor) => {
                    let scaled = Scaled(F::Work::from_f64(*factor));
                    self.pass::<M, _, MODE>(token, strip, scaled, base, None, target, last)
                }
                Step::Add { input, alpha } => {
                    let added = Added(F::Work::from_f64(*alpha));
                    self.pass::<M, _, MODE>(token, strip, added, base, Some(*input), target, last)
                }
                Step::Zero(region) => {
                    let mut kept = [F::Bits::ALL; STRIP];
                    strip.fill(region, &mut kept, F::Bits::default());
                    let Self { values, bits, .. } = self;
                    token.run(Zeroing::<F, MODE> { base, kept: &kept, values, bits, target })
                }
            };
            if MODE == BUNCHED {
                let adds = matches!(step, Step::Add { .. });
                if !finite || !counts.squares_are_accurate::<F::Work>(adds) {
                    return (finite, false);
                }
            }
            if MODE != UNCOUNTED {
                let counters = &mut outcome.steps[i];
                match step {
                    Step::Scale(factor) => {
                        counters.add_scaled(&counts, F::Work::from_f64(*factor).to_f64());
                        counters.add_member(&counts, recipe.member, strip.len());
                    }
                    Step::Add { .. } | Step::Zero(_) => counters.add_moved(&counts),
                }
            }
        }
        if !direct {
            store(&self.bits, out);
        }
        (finite, true)
    }

    /// Calculates with all groups of a strip: the values in `base` if there is one, else those of the step before.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pass<M: Simd, C: Calculation<F>, const MODE: u8>(
        &mut self,
        token: M,
        strip: &Strip<'_>,
        calculation: C,
        base: Option<&Stored<F::Bits>>,
        operand: Option<usize>,
        target: Option<Target<'_, F::Bits>>,
        narrows: bool,
    ) -> (bool, StripCounts<F::Bits>) {
        let Self { values, bits, other } = self;
        let operand = match operand.map(|input| (input, strip.whole::<F>(input))) {
            None => Operand::None,
            Some((_, Some(stored))) => Operand::Stored(stored),
            Some((input, None)) => {
                decode(token, strip.recipe.inputs[input], strip.bytes(input), other);
                Operand::Values(other)
            }
        };
        let cause = calculation.cause(base.is_some(), matches!(operand, Operand::Stored(_)));
        let member = strip.recipe.member != Member::None;
        let narrows = MODE != UNCOUNTED || narrows;
        let len = strip.len();
        token.run(Pass::<F, C, MODE> {
            calculation,
            base,
            operand,
            values,
            bits,
            target,
            cause,
            narrows,
            member,
            len,
        })
    }
}

/// Whether the squares of a strip may be added up in bunches: those of one step over whole strips of the result's dtype.
fn bunches<F: Float>(strip: &Strip<'_>) -> bool {
    let recipe = strip.recipe;
    let Start::From(base) = recipe.start else { return false };
    let whole = |input| strip.whole::<F>(input).is_some();
    whole(base)
        && match &*recipe.steps {
            [Step::Scale(factor)] => {
                recipe.member == Member::None && Scaled(F::Work::from_f64(*factor)).cause_of_bits::<F>()
            }
            [Step::Add { input, alpha }] => {
                whole(*input) && Added(F::Work::from_f64(*alpha)).cause_of_bits::<F>()
            }
            _ => false,
        }
}

/// How to tell which elements a step is meant to change.
#[derive(Clone, Copy, PartialEq)]
enum Cause {
    /// Those where the stored base or operand is not 0.
    Bits,
    /// Those where the value is not 0.
    Values,
    /// Those that change.
    Changes,
}

/// The arithmetic of a step.
trait Calculation<F: Float> {
    /// Whether it has an operand beside the base.
    const BINARY: bool;
    /// Whether it scales, which rounding errors are counted for.
    const SCALES: bool = false;
    fn apply<M: Simd>(&self, token: M, base: LanesOf<F, M>, operand: LanesOf<F, M>) -> LanesOf<F, M>;
    /// The values that are not 0 where the result is meant to differ from the base.
    fn delta<M: Simd>(&self, _: M, base: LanesOf<F, M>, _: LanesOf<F, M>) -> LanesOf<F, M> {
        base
    }
    fn cause(&self, _base_stored: bool, _operand_stored: bool) -> Cause {
        Cause::Changes
    }
}

/// The base.
struct Unchanged;

/// The base times this.
struct Scaled<W>(W);

/// The base plus this times the operand.
struct Added<W>(W);

/// The base and the operand, each times its weight.
struct Mixed<W>(W, W);

impl<F: Float> Calculation<F> for Unchanged {
    const BINARY: bool = false;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apply<M: Simd>(&self, _: M, base: LanesOf<F, M>, _: LanesOf<F, M>) -> LanesOf<F, M> {
        base
    }
}

impl<W: Work> Scaled<W> {
    /// Whether exactly the elements that are not 0 are meant to change: not by a factor of 1.
    fn cause_of_bits<F: Float<Work = W>>(&self) -> bool {
        self.0 != W::ONE
    }
}

impl<F: Float> Calculation<F> for Scaled<F::Work> {
    const BINARY: bool = false;
    const SCALES: bool = true;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apply<M: Simd>(&self, token: M, base: LanesOf<F, M>, _: LanesOf<F, M>) -> LanesOf<F, M> {
        base * LanesOf::<F, M>::splat(token, self.0)
    }

    fn cause(&self, base_stored: bool, _: bool) -> Cause {
        match (self.cause_of_bits::<F>(), base_stored) {
            (true, true) => Cause::Bits,
            (true, false) => Cause::Values,
            (false, _) => Cause::Changes,
        }
    }
}

impl<W: Work> Added<W> {
    /// Whether exactly the elements where the operand is not 0 are meant to change: no product with it vanishes.
    fn cause_of_bits<F: Float<Work = W>>(&self) -> bool {
        self.0 * F::MIN_POSITIVE != W::ZERO
    }
}

impl<F: Float> Calculation<F> for Added<F::Work> {
    const BINARY: bool = true;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apply<M: Simd>(&self, token: M, base: LanesOf<F, M>, operand: LanesOf<F, M>) -> LanesOf<F, M> {
        base + Calculation::<F>::delta(self, token, base, operand)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn delta<M: Simd>(&self, token: M, _: LanesOf<F, M>, operand: LanesOf<F, M>) -> LanesOf<F, M> {
        LanesOf::<F, M>::splat(token, self.0) * operand
    }

    fn cause(&self, _: bool, operand_stored: bool) -> Cause {
        if operand_stored && self.cause_of_bits::<F>() { Cause::Bits } else { Cause::Values }
    }
}

impl<F: Float> Calculation<F> for Mixed<F::Work> {
    const BINARY: bool = true;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apply<M: Simd>(&self, token: M, base: LanesOf<F, M>, operand: LanesOf<F, M>) -> LanesOf<F, M> {
        LanesOf::<F, M>::splat(token, self.0) * base + LanesOf::<F, M>::splat(token, self.1) * operand
    }
}

/// A strip of the input beside the base.
enum Operand<'t, F: Float> {
    None,
    Stored(&'t Stored<F::Bits>),
    Values(&'t Values<F::Work>),
}

/// One calculation with all groups of a strip.
struct Pass<'t, F: Float, C, const MODE: u8> {
    calculation: C,
    base: Option<&'t Stored<F::Bits>>,
    operand: Operand<'t, F>,
    values: &'t mut Values<F::Work>,
    bits: &'t mut [F::Bits; STRIP],
    /// Where the result goes, instead of `values` and `bits`, if this is the last pass.
    target: Option<Target<'t, F::Bits>>,
    cause: Cause,
    /// Whether the result's bits are needed, for counting or because this is the last pass.
    narrows: bool,
    /// Whether the result belongs to an affine set, for which rounding errors are counted.
    member: bool,
    /// Elements of the strip. Beyond them all bits stay 0.
    len: usize,
}

impl<F: Float, C: Calculation<F>, const MODE: u8> Task for Pass<'_, F, C, MODE> {
    type Output = (bool, StripCounts<F::Bits>);

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn work<M: Simd>(self, token: M) -> Self::Output {
        let Self { calculation, base, operand, values, bits, mut target, cause, narrows, member, len } = self;
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
                let mut result = if narrows { F::narrow_any(token, value) } else { [F::Bits::default(); _] };
                // A negative factor makes zeros negative, which beyond the end is no change.
                if 16 * (i + 1) > len {
                    result[len.saturating_sub(16 * i)..].fill(F::Bits::default());
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

/// Zeroes the elements of a strip where `kept` is 0.
struct Zeroing<'t, F: Float, const MODE: u8> {
    base: Option<&'t Stored<F::Bits>>,
    kept: &'t [F::Bits; STRIP],
    values: &'t mut Values<F::Work>,
    bits: &'t mut [F::Bits; STRIP],
    target: Option<Target<'t, F::Bits>>,
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
    match target {
        Some(target) => target.put(i, result),
        None => {
            values.as_chunks_mut().0[i] = value.store();
            bits.as_chunks_mut().0[i] = *result;
        }
    }
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
