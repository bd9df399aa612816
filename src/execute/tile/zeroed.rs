//! A tensor that stays as it is or of which something is zeroed, counted: bits that stay, stay as they are.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use super::super::bits::{Bits, load, store};
use super::super::float::{STRIP, Stored};
use super::super::lanes::{GROUPS, Group, Machine};
use super::super::recipe::{Start, Step};
use super::super::tally::{Groups, Outcome};
use super::Here;

/// Makes a strip in place, or says that this is another recipe.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn make<M: Machine, S: Stored>(here: &Here<'_>, out: &mut [u8], outcome: &mut Outcome) -> bool {
    let mut bits = [S::Bits::default(); STRIP];
    let (region, tally) = match (here.recipe.start, &*here.recipe.steps, &mut *outcome.steps) {
        (Start::InPlace, [Step::Zero(region)], [tally]) => (region, tally),
        (Start::InPlace, [], _) => {
            load(out, &mut bits);
            for bits in bits {
                outcome.passed += u64::from(bits & S::Bits::MAGNITUDE >= S::INFINITY);
            }
            return true;
        }
        _ => return false,
    };
    let mut kept = [S::Bits::ALL; STRIP];
    load(out, &mut bits);
    here.zero(region, &mut kept, S::Bits::default());
    let mut groups = Groups::<S::Bits>::new();
    let mut touched = false;
    for at in 0..GROUPS {
        let (group, kept): (&mut Group<_>, &Group<_>) =
            (&mut bits.as_chunks_mut().0[at], &kept.as_chunks().0[at]);
        let before = *group;
        let was = S::widen::<M>(&before);
        groups.add_before(was);
        if *kept != [S::Bits::ALL; _] {
            for (bits, kept) in group.iter_mut().zip(kept) {
                *bits = *bits & *kept;
            }
            groups.add_change(was, S::widen::<M>(group));
            touched = true;
        }
        groups.count_kept(&before, group, S::INFINITY);
    }
    if touched {
        store(&bits, out);
    }
    tally.add_zeroed(&groups);
    outcome.passed += groups.not_finite();
    true
}
