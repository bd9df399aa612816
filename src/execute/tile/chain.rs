//! [`Chain`]: several calculations in a row, or with inputs of other dtypes. A group goes through all steps in
//! registers.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use super::super::bits::{Bits, Highest, Stretch, Target, group};
use super::super::float::{STRIP, Stored, Values, Work};
use super::super::lanes::{GROUPS, Group, Lanes, Machine, Task};
use super::super::recipe::{Member, Recipe, Start, Step, changes};
use super::super::tally::{Groups, Tally};
use super::Here;

/// Inputs that a chain has at most.
const MOST: usize = 8;

/// Groups that take a step together, so that finding out which step it is costs less.
const TOGETHER: usize = 2;

/// What a chain of calculations works with, for all strips of a tile.
pub(super) struct Chain<S: Stored> {
    /// The values of each input of another dtype than the result's.
    foreign: Vec<Option<Box<Values<S::Work>>>>,
    /// What is counted of each step.
    groups: Vec<Groups<S::Bits>>,
    /// Whether the recipe is such a chain.
    fits: bool,
}

/// A strip of an input.
#[derive(Clone, Copy)]
enum Operand<'t, B: Bits, W> {
    Nothing,
    Stored(&'t Stretch<B>),
    Values(&'t Values<W>),
}

impl<B: Bits, W: Work> Operand<'_, B, W> {
    /// The values of the group number `at`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn lanes<M: Machine, S: Stored<Bits = B, Work = W>>(&self, at: usize) -> S::Lanes<M> {
        match self {
            Self::Nothing => S::Lanes::<M>::splat(W::ZERO),
            Self::Stored(stretch) => S::widen::<M>(&group::<B>(stretch, at)),
            Self::Values(values) => S::Lanes::<M>::load(&values.as_chunks().0[at]),
        }
    }
}

impl<S: Stored> Chain<S> {
    pub(super) fn new(recipe: &Recipe, count: bool) -> Self {
        let of_values = |step: &Step| !matches!(step, Step::Zero(_));
        let fits = recipe.start != Start::InPlace
            && recipe.inputs.len() <= MOST
            && recipe.steps.iter().all(of_values)
            && (!count || recipe.member == Member::None);
        let foreign = |&dtype| (fits && dtype != S::DTYPE).then(|| Box::new([S::Work::ZERO; STRIP]));
        let groups = if fits { recipe.steps.len() } else { 0 };
        Self {
            foreign: recipe.inputs.iter().map(foreign).collect(),
            groups: (0..groups).map(|_| Groups::new()).collect(),
            fits,
        }
    }

    /// Makes a strip, and counts if there is a tally for each step. `None` for other recipes and parts of strips,
    /// `Some(false)` if a value is not finite: nothing is counted then, and the result is of no use.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn make<M: Machine, const COUNT: bool>(
        &mut self,
        here: &Here<'_>,
        out: &mut [u8],
        tallies: &mut [Tally],
    ) -> Option<bool> {
        let out = Target::whole(out, here.past_caches).filter(|_| self.fits)?;
        for (input, values) in self.foreign.iter_mut().enumerate() {
            if let Some(values) = values {
                here.input::<M, _>(input, values);
                // A NaN of another dtype may have bits that rounding makes a number of.
                let mut finite = true;
                for value in values.iter() {
                    finite &= value.is_finite();
                }
                if !finite {
                    return Some(false);
                }
            }
        }
        let mut operands = [Operand::<S::Bits, S::Work>::Nothing; MOST];
        for (input, values) in self.foreign.iter().enumerate() {
            operands[input] = match values {
                Some(values) => Operand::Values(values),
                None => Operand::Stored(here.whole::<S>(input)?),
            };
        }
        if COUNT {
            for groups in &mut self.groups {
                *groups = Groups::new();
            }
        }
        let pass =
            Pass::<S, COUNT> { recipe: here.recipe, operands: &operands, out, groups: &mut self.groups };
        let sound = M::run(pass);
        if COUNT && sound {
            for ((step, groups), tally) in here.recipe.steps.iter().zip(&self.groups).zip(tallies) {
                match step {
                    Step::Scale(factor) => tally.add_scaled(groups, S::Work::from_f64(*factor).to_f64()),
                    _ => tally.add_moved(groups),
                }
            }
        }
        Some(sound)
    }
}

/// A strip: takes all groups through all steps, and says whether all results are finite.
struct Pass<'t, S: Stored, const COUNT: bool> {
    recipe: &'t Recipe,
    operands: &'t [Operand<'t, S::Bits, S::Work>; MOST],
    out: Target<'t, S::Bits>,
    groups: &'t mut [Groups<S::Bits>],
}

impl<M: Machine, S: Stored, const COUNT: bool> Task<M> for Pass<'_, S, COUNT> {
    type Made = bool;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn work(self) -> bool {
        let Self { recipe, operands, mut out, groups } = self;
        let splat = |parameter: f64| S::Lanes::<M>::splat(S::Work::from_f64(parameter));
        let mut highest = Highest::<S::Bits>::new();
        for first in (0..GROUPS).step_by(TOGETHER) {
            let mut values = [splat(0.0); TOGETHER];
            let mut results: [Group<S::Bits>; TOGETHER] = [[S::Bits::default(); _]; _];
            for k in 0..TOGETHER {
                match recipe.start {
                    Start::From(input) => values[k] = operands[input].lanes::<M, S>(first + k),
                    Start::Mix { a, b, weights } => {
                        let (a, b) =
                            (operands[a].lanes::<M, S>(first + k), operands[b].lanes::<M, S>(first + k));
                        values[k] = splat(weights.0) * a + splat(weights.1) * b;
                    }
                    Start::Zeros | Start::InPlace => {}
                }
                if COUNT {
                    results[k] = S::narrow::<M>(values[k]);
                }
            }
            for (i, step) in recipe.steps.iter().enumerate() {
                match step {
                    Step::Scale(factor) => {
                        let (factor, changes) = (splat(*factor), changes::<S::Work>(*factor));
                        for k in 0..TOGETHER {
                            let was = values[k];
                            values[k] = was * factor;
                            if COUNT {
                                let stored = S::narrow::<M>(values[k]);
                                let cause =
                                    if changes { cause::<M, S>(was) } else { [S::Bits::default(); _] };
                                groups[i].count_bits(&results[k], &stored, &cause);
                                groups[i].add_before(was);
                                results[k] = stored;
                            }
                        }
                    }
                    Step::Add { input, alpha } => {
                        let alpha = splat(*alpha);
                        for k in 0..TOGETHER {
                            let (was, delta) = (values[k], alpha * operands[*input].lanes::<M, S>(first + k));
                            values[k] = was + delta;
                            if COUNT {
                                let stored = S::narrow::<M>(values[k]);
                                groups[i].count_bits(&results[k], &stored, &cause::<M, S>(delta));
                                groups[i].add_before(was);
                                groups[i].add_change(was, values[k]);
                                results[k] = stored;
                            }
                        }
                    }
                    Step::Zero(_) => {}
                }
            }
            for k in 0..TOGETHER {
                if !COUNT {
                    results[k] = S::narrow::<M>(values[k]);
                }
                highest = highest.with(results[k]);
                out.put(first + k, &results[k]);
            }
        }
        highest.below(S::INFINITY)
    }
}

/// 1 for each value that is not 0.
#[cfg_attr(not(debug_assertions), inline(always))]
fn cause<M: Machine, S: Stored>(values: S::Lanes<M>) -> Group<S::Bits> {
    let mut cause = [S::Bits::default(); _];
    for (cause, value) in cause.iter_mut().zip(values.store()) {
        *cause = (value != S::Work::ZERO).into();
    }
    cause
}
