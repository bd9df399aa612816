//! The programs that nearly all are: one calculation with inputs of the result's dtype. A whole strip goes from bytes to
//! bytes in one pass, a group at a time in registers.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use super::super::bits::{Highest, Stretch, Target, group};
use super::super::float::{STRIP, Stored, Work};
use super::super::lanes::{GROUPS, Group, Lanes as _, Machine};
use super::super::recipe::{Member, Start, Step, changes};
use super::super::tally::{Groups, Tally};
use super::Here;

/// Makes a strip, and counts if there is a tally for each step. `None` for other programs and parts of strips,
/// `Some(false)` if a value is not finite: nothing is counted then, and the result is of no use.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn make<M: Machine, S: Stored>(
    here: &Here<'_>,
    out: &mut [u8],
    tallies: Option<&mut [Tally]>,
) -> Option<bool> {
    let out = Target::whole(out, here.past_caches)?;
    let splat = |parameter: f64| S::Lanes::<M>::splat(S::Work::from_f64(parameter));
    let count = tallies.is_some();
    let mut groups = Groups::<S::Bits>::new();
    let sound = match (here.recipe.start, &*here.recipe.steps) {
        (Start::From(base), [Step::Scale(factor)]) => {
            if count && !changes::<S::Work>(*factor) {
                return None;
            }
            let inputs = [here.whole::<S>(base)?];
            let by = Scaled::<M, S>(splat(*factor));
            let member = here.recipe.member;
            let sound = if count && member != Member::None {
                calculate::<M, S, _, 1>(&ScaledMember(by), inputs, out, &mut groups, count)
            } else {
                calculate::<M, S, _, 1>(&by, inputs, out, &mut groups, count)
            };
            if let (Some([tally]), true) = (tallies, sound) {
                tally.add_scaled(&groups, S::Work::from_f64(*factor).to_f64());
                tally.add_member(&groups, member, STRIP);
            }
            sound
        }
        (Start::From(base), [Step::Add { input, alpha }]) => {
            // Or not every element of the donor that is not 0 is meant to change something.
            if count && S::Work::from_f64(*alpha) * S::LEAST == S::Work::ZERO {
                return None;
            }
            let inputs = [here.whole::<S>(base)?, here.whole::<S>(*input)?];
            let sound =
                calculate::<M, S, _, 2>(&Added::<M, S>(splat(*alpha)), inputs, out, &mut groups, count);
            if let (Some([tally]), true) = (tallies, sound) {
                tally.add_moved(&groups);
            }
            sound
        }
        (Start::Mix { a, b, weights }, []) => {
            let inputs = [here.whole::<S>(a)?, here.whole::<S>(b)?];
            let mixed = Mixed::<M, S>(splat(weights.0), splat(weights.1));
            calculate::<M, S, _, 2>(&mixed, inputs, out, &mut groups, false)
        }
        _ => return None,
    };
    Some(sound)
}

/// Arithmetic with N inputs: no NaN may have bits that no input could have.
trait Calculation<M: Machine, S: Stored, const N: usize> {
    fn value(&self, inputs: [S::Lanes<M>; N]) -> S::Lanes<M>;
    fn count(groups: &mut Groups<S::Bits>, group: &Calculated<M, S, N>);
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
struct Scaled<M: Machine, S: Stored>(S::Lanes<M>);

impl<M: Machine, S: Stored> Calculation<M, S, 1> for Scaled<M, S> {
    #[inline(always)]
    fn value(&self, [base]: [S::Lanes<M>; 1]) -> S::Lanes<M> {
        base * self.0
    }

    #[inline(always)]
    fn count(groups: &mut Groups<S::Bits>, group: &Calculated<M, S, 1>) {
        let ([stored], [base]) = (&group.stored, group.inputs);
        groups.count_bits(stored, &group.result, stored);
        groups.add_before(base);
    }
}

/// The same of an affine set's scales or biases: what rounding does to them is counted too.
struct ScaledMember<M: Machine, S: Stored>(Scaled<M, S>);

impl<M: Machine, S: Stored> Calculation<M, S, 1> for ScaledMember<M, S> {
    #[inline(always)]
    fn value(&self, base: [S::Lanes<M>; 1]) -> S::Lanes<M> {
        self.0.value(base)
    }

    #[inline(always)]
    fn count(groups: &mut Groups<S::Bits>, group: &Calculated<M, S, 1>) {
        Scaled::count(groups, group);
        let [stored] = &group.stored;
        groups.count_fallen(stored, &group.result, S::LEAST_NORMAL);
        groups.add_error(group.value, S::widen::<M>(&group.result));
    }
}

/// The base, and the donor times this.
struct Added<M: Machine, S: Stored>(S::Lanes<M>);

impl<M: Machine, S: Stored> Calculation<M, S, 2> for Added<M, S> {
    #[inline(always)]
    fn value(&self, [base, donor]: [S::Lanes<M>; 2]) -> S::Lanes<M> {
        base + self.0 * donor
    }

    #[inline(always)]
    fn count(groups: &mut Groups<S::Bits>, group: &Calculated<M, S, 2>) {
        let ([stored, donor], [base, _]) = (&group.stored, group.inputs);
        groups.count_bits(stored, &group.result, donor);
        groups.add_before(base);
        groups.add_change(base, group.value);
    }
}

/// Two donors, each times its weight. There is nothing to count.
struct Mixed<M: Machine, S: Stored>(S::Lanes<M>, S::Lanes<M>);

impl<M: Machine, S: Stored> Calculation<M, S, 2> for Mixed<M, S> {
    #[inline(always)]
    fn value(&self, [a, b]: [S::Lanes<M>; 2]) -> S::Lanes<M> {
        self.0 * a + self.1 * b
    }

    #[inline(always)]
    fn count(_: &mut Groups<S::Bits>, _: &Calculated<M, S, 2>) {}
}

/// Stores the values, and says whether all are finite.
#[cfg_attr(not(debug_assertions), inline(always))]
fn calculate<M: Machine, S: Stored, C: Calculation<M, S, N>, const N: usize>(
    calculation: &C,
    inputs: [&Stretch<S::Bits>; N],
    mut out: Target<'_, S::Bits>,
    groups: &mut Groups<S::Bits>,
    count: bool,
) -> bool {
    let mut highest = Highest::<S::Bits>::new();
    for at in 0..GROUPS {
        let mut stored = [[S::Bits::default(); _]; N];
        let mut decoded = [S::Lanes::<M>::splat(S::Work::ZERO); N];
        for n in 0..N {
            stored[n] = group::<S::Bits>(inputs[n], at);
            decoded[n] = S::widen::<M>(&stored[n]);
        }
        let value = calculation.value(decoded);
        let result = S::narrow::<M>(value);
        highest = highest.with(result);
        if count {
            C::count(groups, &Calculated { stored, inputs: decoded, value, result });
        }
        out.put(at, &result);
    }
    highest.below(S::INFINITY)
}
