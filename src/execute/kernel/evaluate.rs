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
        let only_start = recipe.steps.is_empty();
        let (mut finite, mut base) =
            self.start::<M, MODE, CAREFUL>(token, strip, target.take_if(|_| only_start));
        for (i, step) in recipe.steps.iter().enumerate() {
            let last = i + 1 == recipe.steps.len();
            let way = Way { base: base.take(), target: target.take_if(|_| last), narrows: last };
            let (pass_finite, counts) = match step {
                Step::Scale(factor) => {
                    let scaled = Scaled(F::Work::from_f64(*factor));
                    self.pass::<M, _, MODE, CAREFUL>(token, strip, scaled, None, way)
                }
                Step::Add { input, alpha } => {
                    let added = Added(F::Work::from_f64(*alpha));
                    self.pass::<M, _, MODE, CAREFUL>(token, strip, added, Some(*input), way)
                }
                Step::Zero(region) => {
                    let mut kept = [F::Bits::ALL; STRIP];
                    strip.fill(region, &mut kept, F::Bits::default());
                    let (Self { values, bits, .. }, Way { base, target, .. }) = (&mut *self, way);
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

    /// Sets the values before the first step; the only ones if `target` is given. Returns whether all are finite, and the
    /// input whose bytes the first step should read instead, if it can.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn start<'t, M: Simd, const MODE: u8, const CAREFUL: bool>(
        &mut self,
        token: M,
        strip: &Strip<'t>,
        target: Option<Target<'_, F::Bits>>,
    ) -> (bool, Option<&'t Stored<F::Bits>>) {
        let recipe = strip.recipe;
        let (input, operand) = match recipe.start {
            Start::From(input) => (input, None),
            Start::Mix { a, b, .. } => (a, Some(b)),
            Start::Zeros | Start::InPlace => {
                self.values.fill(F::Work::ZERO);
                self.bits.fill(F::Bits::default());
                return (true, None);
            }
        };
        let base = strip.whole::<F>(input);
        if base.is_none() {
            decode(token, recipe.inputs[input], strip.bytes(input), &mut self.values);
            if !CAREFUL && !all_finite(&self.values) {
                return (false, None);
            }
        }
        let only_start = recipe.steps.is_empty();
        let way = Way { base, target, narrows: MODE != UNCOUNTED || only_start };
        if let Start::Mix { weights, .. } = recipe.start {
            let mixed = Mixed(F::Work::from_f64(weights.0), F::Work::from_f64(weights.1));
            return (self.pass::<M, _, UNCOUNTED, CAREFUL>(token, strip, mixed, operand, way).0, None);
        }
        // A step that computes compares with the bits as they are, NaNs included.
        let as_stored = recipe.inputs[input] == F::DTYPE && recipe.a_step_computes();
        if as_stored && MODE != UNCOUNTED && base.is_none() {
            load(strip.bytes(input), &mut self.bits);
        }
        if as_stored || MODE == UNCOUNTED && !only_start {
            return (true, base);
        }
        (self.pass::<M, _, UNCOUNTED, CAREFUL>(token, strip, Unchanged, None, way).0, None)
    }

    /// Calculates with all groups of a strip: the values in `base` if there is one, else those of the step before.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pass<M: Simd, C: Calculation<F>, const MODE: u8, const CAREFUL: bool>(
        &mut self,
        token: M,
        strip: &Strip<'_>,
        calculation: C,
        operand: Option<usize>,
        Way { base, target, narrows }: Way<'_, F>,
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

/// What a pass reads and writes.
struct Way<'t, F: Float> {
    /// The input to read, instead of the values of the step before.
    base: Option<&'t Stored<F::Bits>>,
    /// Where to write the result, instead of the values for the next step.
    target: Option<Target<'t, F::Bits>>,
    /// Whether the result's bits are needed even if nothing is counted.
    narrows: bool,
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
