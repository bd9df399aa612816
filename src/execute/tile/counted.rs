//! [`Counted`]: a strip's result, and what each step did to it.

use super::super::bits::{load, store};
use super::super::float::{STRIP, Stored, Values, Work};
use super::super::lanes::{GROUPS, Lanes as _, Machine};
use super::super::recipe::{Member, Start, Step, changes};
use super::super::tally::{Groups, Outcome, Tally};
use super::{Here, blame, within_limit};

/// The arrays that a strip is worked on in. Beyond a tensor's end they hold zeros.
pub(super) struct Counted<S: Stored> {
    /// What there is before a step and after it, taking turns.
    stages: [Stage<S>; 2],
    /// A donor's values.
    other: Values<S::Work>,
    /// 1 for each element that a step means to change.
    meant: [S::Bits; STRIP],
}

/// A strip in working precision and as it would be stored.
struct Stage<S: Stored> {
    values: Values<S::Work>,
    bits: [S::Bits; STRIP],
}

impl<S: Stored> Counted<S> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new() -> Self {
        let (values, bits) = ([S::Work::ZERO; STRIP], [S::Bits::default(); STRIP]);
        Self { stages: [Stage { values, bits }, Stage { values, bits }], other: values, meant: bits }
    }

    /// Makes a strip and counts.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn make<M: Machine>(&mut self, here: &Here<'_>, out: &mut [u8], outcome: &mut Outcome) {
        let Self { stages: [now, before], other, meant } = self;
        let (mut now, mut before) = (now, before);
        let computes = here.recipe.computes();
        let mut sound = now.start::<M>(here, out, other);
        for (step, tally) in here.recipe.steps.iter().zip(&mut outcome.steps) {
            std::mem::swap(&mut now, &mut before);
            sound &= now.follow::<M>(before, here, step, other);
            // Beyond the end a negative factor makes zeros negative: that is no change.
            now.bits[here.len()..].fill(S::Bits::default());
            mean::<S>(step, before, now, other, meant);
            count::<M, S>(tally, here, step, before, now, meant);
        }
        if !computes {
            for value in &now.values {
                sound &= within_limit::<S>(*value);
            }
        }
        if !sound {
            blame::<S>(here, out, &now.values, outcome);
        }
        store(&now.bits, out);
    }
}

impl<S: Stored> Stage<S> {
    /// What there is before the first step; false if a value that was computed is not finite.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn start<M: Machine>(&mut self, here: &Here<'_>, out: &[u8], other: &mut Values<S::Work>) -> bool {
        let Self { values, bits } = self;
        let stored = match here.recipe.start {
            Start::InPlace => Some(out),
            // Later steps encode them, so that every NaN gets the same bits.
            Start::From(input) if here.recipe.inputs[input] == S::DTYPE && here.recipe.a_step_computes() => {
                Some(here.bytes(input))
            }
            _ => None,
        };
        if let Some(bytes) = stored {
            load(bytes, bits);
            S::decode::<M>(bits, values);
            return true;
        }
        match here.recipe.start {
            Start::From(input) => here.input::<M, _>(input, values),
            Start::Mix { a, b, weights } => {
                let (to_a, to_b) = (S::Work::from_f64(weights.0), S::Work::from_f64(weights.1));
                here.input::<M, _>(a, values);
                here.input::<M, _>(b, other);
                for (a, b) in values.iter_mut().zip(other) {
                    *a = to_a * *a + to_b * *b;
                }
            }
            Start::Zeros | Start::InPlace => {
                values.fill(S::Work::ZERO);
                bits.fill(S::Bits::default());
                return true;
            }
        }
        self.encode::<M>()
    }

    /// Takes a step from `before`, and leaves a donor's values in `other`; false if a value that was computed is not
    /// finite.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn follow<M: Machine>(
        &mut self,
        before: &Self,
        here: &Here<'_>,
        step: &Step,
        other: &mut Values<S::Work>,
    ) -> bool {
        let Self { values, bits } = self;
        match step {
            Step::Scale(factor) => {
                let factor = S::Work::from_f64(*factor);
                for (value, before) in values.iter_mut().zip(&before.values) {
                    *value = *before * factor;
                }
            }
            Step::Add { input, alpha } => {
                let alpha = S::Work::from_f64(*alpha);
                here.input::<M, _>(*input, other);
                for i in 0..STRIP {
                    values[i] = before.values[i] + alpha * other[i];
                }
            }
            Step::Zero(region) => {
                *values = before.values;
                *bits = before.bits;
                here.zero(region, values, S::Work::ZERO);
                here.zero(region, bits, S::Bits::default());
                return true;
            }
        }
        self.encode::<M>()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn encode<M: Machine>(&mut self) -> bool {
        let Self { values, bits } = self;
        let sound = S::encode::<M>(|i| values[i], bits);
        if !sound {
            S::encode_any(|i| values[i], bits);
        }
        sound
    }
}

/// Marks what a step means to change.
#[cfg_attr(not(debug_assertions), inline(always))]
fn mean<S: Stored>(
    step: &Step,
    before: &Stage<S>,
    after: &Stage<S>,
    donor: &Values<S::Work>,
    meant: &mut [S::Bits; STRIP],
) {
    match step {
        Step::Scale(factor) if changes::<S::Work>(*factor) => {
            for (meant, before) in meant.iter_mut().zip(&before.values) {
                *meant = (*before != S::Work::ZERO).into();
            }
        }
        Step::Add { alpha, .. } => {
            let alpha = S::Work::from_f64(*alpha);
            for (meant, donor) in meant.iter_mut().zip(donor) {
                *meant = (alpha * *donor != S::Work::ZERO).into();
            }
        }
        Step::Scale(_) | Step::Zero(_) => {
            for (meant, (before, after)) in meant.iter_mut().zip(before.bits.iter().zip(after.bits)) {
                *meant = (*before != after).into();
            }
        }
    }
}

/// Counts what a step did: what changed, what should have, and the sums of squares.
#[cfg_attr(not(debug_assertions), inline(always))]
fn count<M: Machine, S: Stored>(
    tally: &mut Tally,
    here: &Here<'_>,
    step: &Step,
    before: &Stage<S>,
    after: &Stage<S>,
    meant: &[S::Bits; STRIP],
) {
    let is_member = matches!(step, Step::Scale(_)) && here.recipe.member != Member::None;
    let mut groups = Groups::<S::Bits>::new();
    for i in 0..GROUPS {
        let (before_bits, after_bits) = (&before.bits.as_chunks().0[i], &after.bits.as_chunks().0[i]);
        let was = S::Lanes::<M>::load(&before.values.as_chunks().0[i]);
        let is = S::Lanes::<M>::load(&after.values.as_chunks().0[i]);
        groups.count_bits(before_bits, after_bits, &meant.as_chunks().0[i]);
        groups.add_before(was);
        groups.add_change(was, is);
        if is_member {
            groups.count_fallen(before_bits, after_bits, S::LEAST_NORMAL);
            groups.add_error(is, S::widen::<M>(after_bits));
        }
    }
    match step {
        Step::Scale(factor) if changes::<S::Work>(*factor) => {
            tally.add_scaled(&groups, S::Work::from_f64(*factor).to_f64());
        }
        _ => tally.add_moved(&groups),
    }
    if is_member {
        tally.add_member(&groups, here.recipe.member, here.len());
    }
}
