//! [`Passes`]: a strip's result, a pass a step: what does not fit in one pass over registers.

use super::super::bits::store;
use super::super::float::{STRIP, Stored, Values, Work};
use super::super::lanes::Machine;
use super::super::recipe::{Start, Step};
use super::super::tally::Outcome;
use super::{Here, blame};

/// The arrays that a strip is worked on in. Beyond a tensor's end they hold zeros.
pub(super) struct Passes<S: Stored> {
    values: Values<S::Work>,
    /// A donor's values.
    other: Values<S::Work>,
    bits: [S::Bits; STRIP],
}

impl<S: Stored> Passes<S> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new() -> Self {
        let values = [S::Work::ZERO; STRIP];
        Self { values, other: values, bits: [S::Bits::default(); STRIP] }
    }

    /// Makes a strip of a recipe that computes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn make<M: Machine>(&mut self, here: &Here<'_>, out: &mut [u8], outcome: &mut Outcome) {
        if !self.passes::<M>(here) {
            self.careful::<M>(here);
            blame::<S>(here, out, &self.values, outcome);
        }
        store(&self.bits, out);
    }

    /// Any program, a pass each step; the last step and the encoding are one. Says whether all values are finite.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn passes<M: Machine>(&mut self, here: &Here<'_>) -> bool {
        self.start::<M>(here);
        let Some((last, others)) = here.recipe.steps.split_last() else {
            return S::encode::<M>(|i| self.values[i], &mut self.bits);
        };
        for step in others {
            self.apply::<M>(here, step);
        }
        let Self { values, other, bits } = self;
        match last {
            Step::Scale(factor) => {
                let factor = S::Work::from_f64(*factor);
                S::encode::<M>(|i| values[i] * factor, bits)
            }
            Step::Add { input, alpha } => {
                let alpha = S::Work::from_f64(*alpha);
                here.input::<M, _>(*input, other);
                S::encode::<M>(|i| values[i] + alpha * other[i], bits)
            }
            Step::Zero(region) => {
                here.zero(region, values, S::Work::ZERO);
                S::encode::<M>(|i| values[i], bits)
            }
        }
    }

    /// The same step by step, so that the values are there too, whatever they are.
    #[cold]
    #[inline(never)]
    fn careful<M: Machine>(&mut self, here: &Here<'_>) {
        self.start::<M>(here);
        for step in &here.recipe.steps {
            self.apply::<M>(here, step);
        }
        S::encode_any(|i| self.values[i], &mut self.bits);
    }

    /// The values before the first step.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn start<M: Machine>(&mut self, here: &Here<'_>) {
        let Self { values, other, .. } = self;
        match here.recipe.start {
            Start::From(input) => here.input::<M, _>(input, values),
            Start::Mix { a, b, weights } => {
                here.input::<M, _>(a, values);
                here.input::<M, _>(b, other);
                let (to_a, to_b) = (S::Work::from_f64(weights.0), S::Work::from_f64(weights.1));
                for (a, b) in values.iter_mut().zip(other) {
                    *a = to_a * *a + to_b * *b;
                }
            }
            Start::Zeros => values.fill(S::Work::ZERO),
            Start::InPlace => unreachable!("what computes reads its start like every other input"),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apply<M: Machine>(&mut self, here: &Here<'_>, step: &Step) {
        let Self { values, other, .. } = self;
        match step {
            Step::Scale(factor) => {
                let factor = S::Work::from_f64(*factor);
                for value in values {
                    *value = *value * factor;
                }
            }
            Step::Add { input, alpha } => {
                let alpha = S::Work::from_f64(*alpha);
                here.input::<M, _>(*input, other);
                for (value, other) in values.iter_mut().zip(other) {
                    *value = *value + alpha * *other;
                }
            }
            Step::Zero(region) => here.zero(region, values, S::Work::ZERO),
        }
    }
}
