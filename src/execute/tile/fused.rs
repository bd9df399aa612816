//! The programs that nearly all are: one calculation with inputs of the result's dtype. A whole strip goes from bytes to
//! bytes in one pass, a group at a time in registers.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use super::super::bits::{Highest, Stretch, Target, group};
use super::super::float::{STRIP, Stored, Work};
use super::super::lanes::{GROUPS, Group, Lanes as _, Machine, Task};
use super::super::recipe::{Member, Start, Step, changes};
use super::super::tally::{Groups, Squares, Tally};
use super::Here;

/// Groups whose squares are added up in working precision: so few that it loses nothing that anybody would see.
const BUNCH: usize = 8;

/// Makes a strip, and counts if it should: then there is a tally for each step. `None` for other programs and parts of
/// strips, `Some(false)` if a value is not finite, or its square not right in working precision: nothing is counted then,
/// and the result is of no use.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn make<M: Machine, S: Stored, const COUNT: bool>(
    here: &Here<'_>,
    out: &mut [u8],
    tallies: &mut [Tally],
) -> Option<bool> {
    let out = Target::whole(out, here.past_caches)?;
    match (here.recipe.start, &*here.recipe.steps) {
        (Start::From(base), [Step::Scale(factor)]) => {
            if COUNT && !changes::<S::Work>(*factor) {
                return None;
            }
            let inputs = [here.whole::<S>(base)?];
            let by = Scaled::<S>(S::Work::from_f64(*factor));
            let member = here.recipe.member;
            let (sound, groups) = if COUNT && member != Member::None {
                Pass::<S, _, _, COUNT>::run::<M>(ScaledMember(by), inputs, out)
            } else {
                Pass::<S, _, _, COUNT>::run::<M>(by, inputs, out)
            };
            if let ([tally], true) = (tallies, COUNT && sound) {
                tally.add_scaled(&groups, S::Work::from_f64(*factor).to_f64());
                tally.add_member(&groups, member, STRIP);
            }
            Some(sound)
        }
        (Start::From(base), [Step::Add { input, alpha }]) => {
            // Or not every element of the donor that is not 0 is meant to change something.
            if COUNT && S::Work::from_f64(*alpha) * S::LEAST == S::Work::ZERO {
                return None;
            }
            let inputs = [here.whole::<S>(base)?, here.whole::<S>(*input)?];
            let added = Added::<S>(S::Work::from_f64(*alpha));
            let (sound, groups) = Pass::<S, _, _, COUNT>::run::<M>(added, inputs, out);
            if let ([tally], true) = (tallies, COUNT && sound) {
                tally.add_moved(&groups);
            }
            Some(sound)
        }
        (Start::Mix { a, b, weights }, []) => {
            let inputs = [here.whole::<S>(a)?, here.whole::<S>(b)?];
            let mixed = Mixed::<S>(S::Work::from_f64(weights.0), S::Work::from_f64(weights.1));
            Some(Pass::<S, _, _, false>::run::<M>(mixed, inputs, out).0)
        }
        _ => None,
    }
}

/// Arithmetic with N inputs: no NaN may have bits that no input could have.
trait Calculation<M: Machine, S: Stored, const N: usize> {
    fn value(&self, inputs: [S::Lanes<M>; N]) -> S::Lanes<M>;
    fn count(counts: &mut Counts<M, S>, group: &Calculated<M, S, N>);
    /// Whether what was counted of a strip is right.
    fn is_right(_: &Groups<S::Bits>) -> bool {
        true
    }
}

/// What is counted.
struct Counts<M: Machine, S: Stored> {
    groups: Groups<S::Bits>,
    /// Of the groups since the last were added.
    squares: Squares<S::Lanes<M>>,
}

/// A group of a calculation.
struct Calculated<M: Machine, S: Stored, const N: usize> {
    /// The inputs as they are stored.
    stored: [Group<S::Bits>; N],
    inputs: [S::Lanes<M>; N],
    value: S::Lanes<M>,
    /// The value as it is stored.
    result: Group<S::Bits>,
}

/// The base times this.
struct Scaled<S: Stored>(S::Work);

impl<M: Machine, S: Stored> Calculation<M, S, 1> for Scaled<S> {
    #[inline(always)]
    fn value(&self, [base]: [S::Lanes<M>; 1]) -> S::Lanes<M> {
        base * S::Lanes::<M>::splat(self.0)
    }

    #[inline(always)]
    fn count(counts: &mut Counts<M, S>, group: &Calculated<M, S, 1>) {
        let ([stored], [base]) = (&group.stored, group.inputs);
        counts.groups.count_bits(stored, &group.result, stored);
        counts.squares.add_before(base);
    }

    #[inline(always)]
    fn is_right(groups: &Groups<S::Bits>) -> bool {
        groups.squares_are_right::<S::Work>(false)
    }
}

/// The same of an affine set's scales or biases: what rounding does to them is counted too.
struct ScaledMember<S: Stored>(Scaled<S>);

impl<M: Machine, S: Stored> Calculation<M, S, 1> for ScaledMember<S> {
    #[inline(always)]
    fn value(&self, base: [S::Lanes<M>; 1]) -> S::Lanes<M> {
        Calculation::<M, S, 1>::value(&self.0, base)
    }

    #[inline(always)]
    fn count(Counts { groups, .. }: &mut Counts<M, S>, group: &Calculated<M, S, 1>) {
        let ([stored], [base]) = (&group.stored, group.inputs);
        groups.count_bits(stored, &group.result, stored);
        groups.add_before(base);
        groups.count_fallen(stored, &group.result, S::LEAST_NORMAL);
        groups.add_error(group.value, S::widen::<M>(&group.result));
    }
}

/// The base, and the donor times this.
struct Added<S: Stored>(S::Work);

impl<M: Machine, S: Stored> Calculation<M, S, 2> for Added<S> {
    #[inline(always)]
    fn value(&self, [base, donor]: [S::Lanes<M>; 2]) -> S::Lanes<M> {
        base + S::Lanes::<M>::splat(self.0) * donor
    }

    #[inline(always)]
    fn count(counts: &mut Counts<M, S>, group: &Calculated<M, S, 2>) {
        let ([stored, donor], [base, _]) = (&group.stored, group.inputs);
        counts.groups.count_bits(stored, &group.result, donor);
        counts.squares.add_before(base);
        counts.squares.add_change(base, group.value);
    }

    #[inline(always)]
    fn is_right(groups: &Groups<S::Bits>) -> bool {
        groups.squares_are_right::<S::Work>(true)
    }
}

/// Two donors, each times its weight. There is nothing to count.
struct Mixed<S: Stored>(S::Work, S::Work);

impl<M: Machine, S: Stored> Calculation<M, S, 2> for Mixed<S> {
    #[inline(always)]
    fn value(&self, [a, b]: [S::Lanes<M>; 2]) -> S::Lanes<M> {
        S::Lanes::<M>::splat(self.0) * a + S::Lanes::<M>::splat(self.1) * b
    }

    #[inline(always)]
    fn count(_: &mut Counts<M, S>, _: &Calculated<M, S, 2>) {}
}

/// A strip of a calculation: stores the values, and says whether all are finite and what it counted is right.
struct Pass<'t, S: Stored, C, const N: usize, const COUNT: bool> {
    calculation: C,
    inputs: [&'t Stretch<S::Bits>; N],
    out: Target<'t, S::Bits>,
}

impl<'t, S: Stored, C, const N: usize, const COUNT: bool> Pass<'t, S, C, N, COUNT> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn run<M: Machine>(
        calculation: C,
        inputs: [&'t Stretch<S::Bits>; N],
        out: Target<'t, S::Bits>,
    ) -> (bool, Groups<S::Bits>)
    where
        C: Calculation<M, S, N>,
    {
        M::run(Self { calculation, inputs, out })
    }
}

impl<M: Machine, S: Stored, C: Calculation<M, S, N>, const N: usize, const COUNT: bool> Task<M>
    for Pass<'_, S, C, N, COUNT>
{
    type Made = (bool, Groups<S::Bits>);

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn work(self) -> Self::Made {
        let Self { calculation, inputs, mut out } = self;
        let mut highest = Highest::<S::Bits>::new();
        let mut counts = Counts::<M, S> { groups: Groups::new(), squares: Squares::new() };
        // Short loops are unrolled, which serves nobody who does not count.
        let bunch = if COUNT { BUNCH } else { GROUPS };
        for first in (0..GROUPS).step_by(bunch) {
            for at in first..first + bunch {
                let mut stored = [[S::Bits::default(); _]; N];
                let mut decoded = [S::Lanes::<M>::splat(S::Work::ZERO); N];
                for n in 0..N {
                    stored[n] = group::<S::Bits>(inputs[n], at);
                    decoded[n] = S::widen::<M>(&stored[n]);
                }
                let value = calculation.value(decoded);
                let result = S::narrow::<M>(value);
                highest = highest.with(result);
                if COUNT {
                    C::count(&mut counts, &Calculated { stored, inputs: decoded, value, result });
                }
                out.put(at, &result);
            }
            if COUNT {
                counts.groups.add_squares(&counts.squares);
                counts.squares = Squares::new();
            }
        }
        let groups = counts.groups;
        (highest.below(S::INFINITY) && (!COUNT || C::is_right(&groups)), groups)
    }
}
