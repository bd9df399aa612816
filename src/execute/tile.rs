//! One tile: decode, apply the whole recipe in working precision, encode once.
//!
//! A tile is worked on in strips that stay in a first-level cache. Bytes in, bytes out: nothing here knows of files.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

mod chain;
mod counted;
mod fused;
mod passes;
mod zeroed;

use std::ops::Range;

use super::bits::{Stretch, load, whole};
use super::float::{Brain, Half, STRIP, Single, Stored, Values, Work, decode};
use super::lanes::{Machine, Plain};
use super::recipe::{Recipe, Start, Step};
use super::region::runs;
use super::tally::Outcome;
#[cfg(target_arch = "x86_64")]
use super::wide::{self, Wide};
use crate::checkpoint::Dtype;
use chain::Chain;
use counted::Counted;
use passes::Passes;

/// A stretch of a tensor and the bytes that belong to it.
pub(super) struct Tile<'t> {
    /// Index of its first element in the flattened tensor.
    pub(super) first: usize,
    /// Holds the start's bytes if the recipe starts in place, and the result's afterwards.
    pub(super) out: &'t mut [u8],
    /// The same stretch of each input.
    pub(super) inputs: &'t [&'t [u8]],
    /// Whether nobody reads the result soon.
    pub(super) past_caches: bool,
    /// Whether to use the general evaluator alone, without the fast paths. The bench measures what they gain.
    pub(super) general: bool,
}

/// Makes a tile's result. `count` asks for figures.
pub(super) fn edit(recipe: &Recipe, tile: &mut Tile<'_>, count: bool) -> Outcome {
    match recipe.dtype {
        Dtype::F16 if count => run::<Half, true>(recipe, tile),
        Dtype::F16 => run::<Half, false>(recipe, tile),
        Dtype::BF16 if count => run::<Brain, true>(recipe, tile),
        Dtype::BF16 => run::<Brain, false>(recipe, tile),
        Dtype::F32 if count => run::<Single, true>(recipe, tile),
        Dtype::F32 => run::<Single, false>(recipe, tile),
        _ => {
            copy(recipe, tile);
            Outcome::new(recipe.steps.len())
        }
    }
}

/// Bits as they are, and zeros.
fn copy(recipe: &Recipe, tile: &mut Tile<'_>) {
    if recipe.start == Start::Zeros {
        tile.out.fill(0);
    }
    match recipe.width() {
        2 => zero::<2>(recipe, tile),
        4 => zero::<4>(recipe, tile),
        8 => zero::<8>(recipe, tile),
        1 => zero::<1>(recipe, tile),
        width => unreachable!("no dtype has elements of {width} bytes"),
    }
}

/// Zeroes what the steps say, elements of so many bytes.
fn zero<const WIDTH: usize>(recipe: &Recipe, tile: &mut Tile<'_>) {
    let (elements, _) = tile.out.as_chunks_mut::<WIDTH>();
    let window = tile.first..tile.first + elements.len();
    for step in &recipe.steps {
        if let Step::Zero(region) = step {
            runs(region, &recipe.shape, window.clone(), |run| clear(&mut elements[run], [0; WIDTH]));
        }
    }
}

/// Takes the widest instructions that this machine has. Multiplication and addition stay two roundings in all of them.
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "instructions that were asked for at run time")
)]
fn run<S: Stored, const COUNT: bool>(recipe: &Recipe, tile: &mut Tile<'_>) -> Outcome {
    if !COUNT && !recipe.computes() {
        copy(recipe, tile);
        return Outcome::default();
    }
    #[cfg(target_arch = "x86_64")]
    if Wide::is_here() {
        #[target_feature(enable = "avx2,f16c,fma")]
        fn wide<S: Stored, const COUNT: bool>(recipe: &Recipe, tile: &mut Tile<'_>) -> Outcome {
            strips::<Wide, S, COUNT>(recipe, tile)
        }
        // SAFETY: the processor has AVX2, F16C and FMA, the only features that `wide` is compiled for.
        let outcome = unsafe { wide::<S, COUNT>(recipe, tile) };
        if tile.past_caches {
            wide::fence();
        }
        return outcome;
    }
    strips::<Plain, S, COUNT>(recipe, tile)
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn strips<M: Machine, S: Stored, const COUNT: bool>(recipe: &Recipe, tile: &mut Tile<'_>) -> Outcome {
    let mut outcome = Outcome::new(if COUNT { recipe.steps.len() } else { 0 });
    let mut chain = Chain::<S>::new(recipe, COUNT);
    let (mut passes, mut counted) = (None::<Passes<S>>, None::<Counted<S>>);
    let general = tile.general;
    for (i, out) in tile.out.chunks_mut(STRIP * size_of::<S::Bits>()).enumerate() {
        let at = i * STRIP;
        let window = tile.first + at..tile.first + at + out.len() / size_of::<S::Bits>();
        let here = Here { recipe, inputs: tile.inputs, at, window, past_caches: tile.past_caches };
        // Without steps there is nothing to count.
        let count = COUNT && !(recipe.steps.is_empty() && recipe.computes());
        let made = match general {
            true => None,
            false => fused::make::<M, S, COUNT>(&here, out, &mut outcome.steps)
                .or_else(|| chain.make::<M, COUNT>(&here, out, &mut outcome.steps)),
        };
        if made == Some(true) || count && !general && zeroed::make::<M, S>(&here, out, &mut outcome) {
            continue;
        }
        if count {
            counted.get_or_insert_with(Counted::new).make::<M>(&here, out, &mut outcome);
        } else {
            passes.get_or_insert_with(Passes::new).make::<M>(&here, out, &mut outcome);
        }
    }
    outcome
}

/// The strip that is being worked on: where it is, and what belongs to it.
struct Here<'t> {
    recipe: &'t Recipe,
    inputs: &'t [&'t [u8]],
    /// First element, counted in the tile.
    at: usize,
    /// Its elements, counted in the flattened tensor.
    window: Range<usize>,
    past_caches: bool,
}

impl Here<'_> {
    fn len(&self) -> usize {
        self.window.len()
    }

    /// The bytes of this strip of an input.
    #[inline(always)]
    fn bytes(&self, input: usize) -> &[u8] {
        let width = self.recipe.inputs[input].bitsize() / 8;
        &self.inputs[input][self.at * width..(self.at + self.len()) * width]
    }

    /// Decodes this strip of an input.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn input<M: Machine, W: Work>(&self, input: usize, values: &mut Values<W>) {
        decode::<M, W>(self.recipe.inputs[input], self.bytes(input), values);
    }

    /// This strip of an input, if it is a whole one of this dtype.
    #[inline(always)]
    fn whole<S: Stored>(&self, input: usize) -> Option<&Stretch<S::Bits>> {
        if self.recipe.inputs[input] == S::DTYPE { whole::<S::Bits>(self.bytes(input)) } else { None }
    }

    /// Zeroes what the region has of this strip.
    #[inline(always)]
    fn zero<T: Copy>(&self, region: &crate::plan::Region, values: &mut [T; STRIP], zero: T) {
        runs(region, &self.recipe.shape, self.window.clone(), |run| clear(&mut values[run], zero));
    }
}

/// Fills it. Of columns, many are zeroed one at a time, for which a call would be slow.
#[inline(always)]
fn clear<T: Copy>(run: &mut [T], zero: T) {
    match run {
        [one] => *one = zero,
        run => run.fill(zero),
    }
}

#[inline(always)]
fn within_limit<S: Stored>(value: S::Work) -> bool {
    value.abs() < S::LIMIT
}

/// Finds out which values are not finite for no reason: those whose live inputs all are. Rare, so it may be slow. `out`
/// holds what it held when the tile began if the recipe starts in place.
#[cold]
#[inline(never)]
fn blame<S: Stored>(here: &Here<'_>, out: &[u8], values: &Values<S::Work>, outcome: &mut Outcome) {
    let n = here.len();
    let values = &values[..n];
    let mut sound = vec![true; n];
    let mut input = [S::Work::ZERO; STRIP];
    let mut and_finite = |sound: &mut [bool], read: &dyn Fn(&mut Values<S::Work>)| {
        read(&mut input);
        for (sound, value) in sound.iter_mut().zip(&input) {
            *sound &= value.is_finite();
        }
    };
    match here.recipe.start {
        Start::InPlace => and_finite(&mut sound, &|values| {
            let mut bits = [S::Bits::default(); STRIP];
            load(out, &mut bits);
            S::decode::<Plain>(&bits, values);
        }),
        Start::Zeros => {}
        Start::From(a) => and_finite(&mut sound, &|values| here.input::<Plain, _>(a, values)),
        Start::Mix { a, b, .. } => {
            and_finite(&mut sound, &|values| here.input::<Plain, _>(a, values));
            and_finite(&mut sound, &|values| here.input::<Plain, _>(b, values));
        }
    }
    for step in &here.recipe.steps {
        match step {
            Step::Scale(_) => {}
            Step::Add { input, .. } => {
                and_finite(&mut sound, &|values| here.input::<Plain, _>(*input, values));
            }
            Step::Zero(region) => {
                runs(region, &here.recipe.shape, here.window.clone(), |run| sound[run].fill(true));
            }
        }
    }
    let odd = values.iter().filter(|value| !within_limit::<S>(**value)).count() as u64;
    let broken = |i: &usize| sound[*i] && !within_limit::<S>(values[*i]);
    let count = (0..n).filter(broken).count() as u64;
    let overflow = (0..n).find(broken).map(|first| (count, (here.window.start + first) as u64));
    outcome.add(&Outcome { overflow, passed: odd - count, ..Outcome::default() });
}

#[cfg(test)]
mod tests;
