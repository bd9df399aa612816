//! [`Evaluator`]: applies a recipe to a strip, a pass over its groups for each step.
//!
//! A pass widens a group, calculates, counts and narrows in registers. The first pass reads the input's bytes and the
//! last one writes the result's, so that a recipe of one step is a single pass; values between two steps stay in a
//! first-level cache.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use super::bits::{Bits, STRIP, Stored, load, store};
use super::calculation::{Added, Calculation, Mixed, Scaled, Unchanged};
use super::counters::{Counters, Outcome, StripCounts};
use super::dtype::{Float, Values, decode};
use super::memory::Target;
use super::overflow;
use super::pass::{BUNCHED, EXACT, Operand, Pass, UNCOUNTED, Zeroing};
use super::simd::{Simd, Work};
use super::strip::Strip;
use crate::execute::recipe::{Member, Start, Step};

/// What a strip is evaluated in.
pub(super) struct Evaluator<F: Float> {
    /// The values after the last step.
    values: Values<F::Work>,
    /// What they would be stored as, if steps are counted.
    bits: [F::Bits; STRIP],
    /// The values of an input that is no whole strip of the result's dtype.
    other: Values<F::Work>,
    /// What each step did to the strip.
    counters: Vec<Counters>,
}

impl<F: Float> Evaluator<F> {
    /// For a recipe with this number of steps, or 0 if they are not counted.
    pub(super) fn new(steps: usize) -> Self {
        let (values, bits) = ([F::Work::ZERO; STRIP], [F::Bits::default(); STRIP]);
        Self { values, bits, other: values, counters: vec![Counters::default(); steps] }
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
        // Most strips are whole and finite. Any other is evaluated carefully.
        let whole = strip.len() == STRIP;
        let fast = match COUNT {
            _ if !whole => false,
            false => self.steps::<M, UNCOUNTED, false>(token, strip, out, outcome),
            true if bunches::<F>(strip) => self.steps::<M, BUNCHED, false>(token, strip, out, outcome),
            true => self.steps::<M, EXACT, false>(token, strip, out, outcome),
        };
        let finite = fast
            || if COUNT {
                self.steps::<M, EXACT, true>(token, strip, out, outcome)
            } else {
                self.steps::<M, UNCOUNTED, true>(token, strip, out, outcome)
            };
        if !finite {
            overflow::find::<F>(strip, out, outcome);
        }
    }

    /// Applies all steps. Returns whether all values are finite, and accurately counted. If not, nothing is counted and the
    /// result is of no use, unless `CAREFUL`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn steps<M: Simd, const MODE: u8, const CAREFUL: bool>(
        &mut self,
        token: M,
        strip: &Strip<'_>,
        out: &mut [u8],
        outcome: &mut Outcome,
    ) -> bool {
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
            (Some(input), None) => {
                decode(token, recipe.inputs[input], strip.bytes(input), &mut self.values);
                if !CAREFUL && !all_finite(&self.values) {
                    return false;
                }
            }
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
                finite &= self
                    .pass::<M, _, UNCOUNTED, CAREFUL>(
                        token,
                        strip,
                        mix,
                        base.take(),
                        operand,
                        target,
                        narrows,
                    )
                    .0;
            }
            // A step that computes compares with the bits as they are, NaNs included.
            (Start::From(input), _) if recipe.inputs[input] == F::DTYPE && recipe.a_step_computes() => {
                if MODE != UNCOUNTED && base.is_none() {
                    load(strip.bytes(input), &mut self.bits);
                }
            }
            (Start::From(_), _) if MODE != UNCOUNTED || only_start => {
                let target = target.take_if(|_| only_start);
                finite &= self
                    .pass::<M, _, UNCOUNTED, CAREFUL>(
                        token,
                        strip,
                        Unchanged,
                        base.take(),
                        None,
                        target,
                        narrows,
                    )
                    .0;
            }
            _ => {}
        }
        for (i, step) in recipe.steps.iter().enumerate() {
            let last = i + 1 == recipe.steps.len();
            let target = target.take_if(|_| last);
            let base = base.take();
            let (pass_finite, counts) = match step {
                Step::Scale(factor) => {
                    let scaled = Scaled(F::Work::from_f64(*factor));
                    self.pass::<M, _, MODE, CAREFUL>(token, strip, scaled, base, None, target, last)
                }
                Step::Add { input, alpha } => {
                    let added = Added(F::Work::from_f64(*alpha));
                    self.pass::<M, _, MODE, CAREFUL>(token, strip, added, base, Some(*input), target, last)
                }
                Step::Zero(region) => {
                    let mut kept = [F::Bits::ALL; STRIP];
                    strip.fill(region, &mut kept, F::Bits::default());
                    let Self { values, bits, .. } = self;
                    token.run(Zeroing::<F, MODE> { base, kept: &kept, values, bits, target })
                }
            };
            finite &= pass_finite;
            if MODE == BUNCHED {
                finite &= counts.squares_are_accurate::<F::Work>(matches!(step, Step::Add { .. }));
            }
            if MODE != UNCOUNTED {
                let mut counters = Counters::default();
                match step {
                    Step::Scale(factor) => {
                        counters.add_scaled(&counts, F::Work::from_f64(*factor).to_f64());
                        counters.add_member(&counts, recipe.member, strip.len());
                    }
                    Step::Add { .. } | Step::Zero(_) => counters.add_moved(&counts),
                }
                self.counters[i] = counters;
            }
        }
        if MODE != UNCOUNTED && (finite || CAREFUL) {
            for (total, counters) in outcome.steps.iter_mut().zip(&self.counters) {
                total.add(counters);
            }
        }
        if !direct {
            store(&self.bits, out);
        }
        finite
    }

    /// Calculates with all groups of a strip: the values in `base` if there is one, else those of the step before.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pass<M: Simd, C: Calculation<F>, const MODE: u8, const CAREFUL: bool>(
        &mut self,
        token: M,
        strip: &Strip<'_>,
        calculation: C,
        base: Option<&Stored<F::Bits>>,
        operand: Option<usize>,
        target: Option<Target<'_, F::Bits>>,
        narrows: bool,
    ) -> (bool, StripCounts<F::Bits>) {
        let Self { values, bits, other, .. } = self;
        let operand = match operand.map(|input| (input, strip.whole::<F>(input))) {
            None => Operand::None,
            Some((_, Some(stored))) => Operand::Stored(stored),
            Some((input, None)) => {
                decode(token, strip.recipe.inputs[input], strip.bytes(input), other);
                if !CAREFUL && !all_finite(other) {
                    return (false, StripCounts::new());
                }
                Operand::Values(other)
            }
        };
        let cause = calculation.cause(base.is_some(), matches!(operand, Operand::Stored(_)));
        let member = strip.recipe.member != Member::None;
        let narrows = MODE != UNCOUNTED || narrows;
        let len = strip.len();
        let pass = Pass::<F, C, MODE, CAREFUL> {
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
        };
        pass.run(token)
    }
}

/// Whether no value is infinite or NaN. A NaN of another dtype may have bits that rounding makes a number of.
#[cfg_attr(not(debug_assertions), inline(always))]
fn all_finite<W: Work>(values: &Values<W>) -> bool {
    let mut finite = true;
    for value in values {
        finite &= value.is_finite();
    }
    finite
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
