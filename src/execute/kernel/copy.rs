//! Copying and zeroing: bits stay as they are, whatever the dtype and NaNs included.

use std::marker::PhantomData;

use super::bits::{Bits, GROUPS, Group, STRIP, load, store};
use super::counters::{Counters, Outcome, StripCounts};
use super::dtype::Float;
use super::simd::{Simd, Task};
use super::strip::{Strip, Tile, fill_run};
use crate::execute::recipe::{Recipe, Start, Step};
use crate::execute::region::runs;

/// Makes a tile of a recipe that computes nothing, and counts nothing.
pub(super) fn copy(recipe: &Recipe, tile: &mut Tile<'_>) {
    if recipe.start == Start::Zeros {
        tile.out.fill(0);
    }
    match recipe.width() {
        1 => zero::<1>(recipe, tile),
        2 => zero::<2>(recipe, tile),
        4 => zero::<4>(recipe, tile),
        8 => zero::<8>(recipe, tile),
        width => unreachable!("no dtype has elements of {width} bytes"),
    }
}

/// Zeroes the regions of all steps, in elements of `WIDTH` bytes.
fn zero<const WIDTH: usize>(recipe: &Recipe, tile: &mut Tile<'_>) {
    let (elements, _) = tile.out.as_chunks_mut::<WIDTH>();
    let window = tile.first..tile.first + elements.len();
    for step in &recipe.steps {
        if let Step::Zero(region) = step {
            runs(region, &recipe.shape, window.clone(), |run| fill_run(&mut elements[run], [0; WIDTH]));
        }
    }
}

/// Makes a strip of a recipe that computes nothing, and counts what each step does.
pub(super) struct CountedCopy<'c, F> {
    pub(super) strip: &'c Strip<'c>,
    pub(super) out: &'c mut [u8],
    pub(super) outcome: &'c mut Outcome,
    pub(super) dtype: PhantomData<F>,
}

impl<F: Float> Task for CountedCopy<'_, F> {
    type Output = ();

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn work<M: Simd>(self, token: M) {
        let Self { strip, out, outcome, dtype: _ } = self;
        let mut bits = [F::Bits::default(); STRIP];
        if strip.recipe.start != Start::Zeros {
            load(out, &mut bits);
        }
        let mut touched = strip.recipe.start == Start::Zeros;
        for (step, counters) in strip.recipe.steps.iter().zip(&mut outcome.steps) {
            let Step::Zero(region) = step else { continue };
            let mut kept = [F::Bits::ALL; STRIP];
            strip.fill(region, &mut kept, F::Bits::default());
            touched |= Zeroing::<F> { bits: &mut bits, kept: &kept, counters }.work(token);
        }
        let mut not_finite = 0_u32;
        for bits in bits {
            not_finite += u32::from(bits & F::Bits::MAGNITUDE >= F::INFINITY);
        }
        outcome.passed += u64::from(not_finite);
        if touched {
            store(&bits, out);
        }
    }
}

/// Zeroes and counts the elements where `kept` is 0. Returns whether there are any.
struct Zeroing<'t, F: Float> {
    bits: &'t mut [F::Bits; STRIP],
    kept: &'t [F::Bits; STRIP],
    counters: &'t mut Counters,
}

impl<F: Float> Task for Zeroing<'_, F> {
    type Output = bool;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn work<M: Simd>(self, token: M) -> bool {
        let Self { bits, kept, counters } = self;
        let mut counts = StripCounts::<F::Bits>::new();
        let mut touched = false;
        for i in 0..GROUPS {
            let (group, kept): (&mut Group<_>, &Group<_>) =
                (&mut bits.as_chunks_mut().0[i], &kept.as_chunks().0[i]);
            let before = *group;
            let was = F::widen(token, &before);
            counts.add_before(was);
            if *kept != [F::Bits::ALL; _] {
                for (bits, kept) in group.iter_mut().zip(kept) {
                    *bits = *bits & *kept;
                }
                counts.add_change(was, F::widen(token, group));
                touched = true;
            }
            counts.count_kept(&before, group);
        }
        counters.add_zeroed(&counts);
        touched
    }
}
