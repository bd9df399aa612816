//! One tile: decode, apply the whole recipe in working precision, encode once.
//!
//! A tile is worked on in strips that stay in a first-level cache. Bytes in, bytes out: nothing here knows of files.

use std::ops::Range;

use super::float::{Brain, Half, STRIP, Single, Stored, Work, decode};
use super::recipe::{Member, Recipe, Start, Step};
use super::region::runs;
use super::tally::{Outcome, Strip};
use crate::checkpoint::Dtype;

/// A stretch of a tensor and the bytes that belong to it.
pub(super) struct Tile<'t> {
    /// Index of its first element in the flattened tensor.
    pub(super) first: usize,
    /// Holds the start's bytes if the recipe starts in place, and the result's afterwards.
    pub(super) out: &'t mut [u8],
    /// The same stretch of each input.
    pub(super) inputs: &'t [&'t [u8]],
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
    let width = recipe.width();
    if recipe.start == Start::Zeros {
        tile.out.fill(0);
    }
    let window = tile.first..tile.first + tile.out.len() / width;
    for step in &recipe.steps {
        if let Step::Zero(region) = step {
            runs(region, &recipe.shape, window.clone(), |run| {
                tile.out[run.start * width..run.end * width].fill(0);
            });
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
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide<S: Stored, const COUNT: bool>(recipe: &Recipe, tile: &mut Tile<'_>) -> Outcome {
            strips::<S, COUNT>(recipe, tile)
        }
        // SAFETY: the processor has AVX2, the only feature that `wide` is compiled for.
        return unsafe { wide::<S, COUNT>(recipe, tile) };
    }
    strips::<S, COUNT>(recipe, tile)
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each set of instructions")]
fn strips<S: Stored, const COUNT: bool>(recipe: &Recipe, tile: &mut Tile<'_>) -> Outcome {
    let mut outcome = Outcome::new(if COUNT { recipe.steps.len() } else { 0 });
    let mut bench = Bench::<S>::new();
    for (i, chunk) in tile.out.chunks_mut(STRIP * S::BYTES).enumerate() {
        let at = i * STRIP;
        let n = chunk.len() / S::BYTES;
        let here = Here { recipe, inputs: tile.inputs, at, window: tile.first + at..tile.first + at + n };
        bench.start(&here, chunk);
        for (k, step) in recipe.steps.iter().enumerate() {
            if COUNT {
                bench.remember(n, k == 0 && recipe.start != Start::InPlace);
            }
            bench.apply(&here, step);
            if COUNT {
                bench.count(&here, step, &mut outcome, k);
            }
        }
        let odd = if recipe.computes() || COUNT { bench.beyond_limit(n) } else { 0 };
        if odd > 0 {
            blame::<S>(&here, chunk, &bench.values[..n], odd, &mut outcome);
        }
        bench.finish(&here, chunk, COUNT);
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
}

impl Here<'_> {
    fn len(&self) -> usize {
        self.window.len()
    }

    /// Decodes this strip of an input.
    #[inline]
    fn input<W: Work>(&self, input: usize, values: &mut [W]) {
        let dtype = self.recipe.inputs[input];
        let width = dtype.bitsize() / 8;
        decode(dtype, &self.inputs[input][self.at * width..(self.at + values.len()) * width], values);
    }
}

/// The arrays that a strip is worked on in.
struct Bench<S: Stored> {
    values: [S::Work; STRIP],
    /// A donor's values, then what a step adds.
    other: [S::Work; STRIP],
    bits: [S::Bits; STRIP],
    before: [S::Work; STRIP],
    before_bits: [S::Bits; STRIP],
}

impl<S: Stored> Bench<S> {
    #[inline]
    fn new() -> Self {
        let (values, bits) = ([S::Work::ZERO; STRIP], [S::Bits::default(); STRIP]);
        Self { values, other: values, bits, before: values, before_bits: bits }
    }

    #[inline]
    fn start(&mut self, here: &Here<'_>, chunk: &[u8]) {
        let n = here.len();
        let values = &mut self.values[..n];
        match here.recipe.start {
            Start::InPlace => {
                S::load(chunk, &mut self.bits[..n]);
                S::decode(&self.bits[..n], values);
            }
            Start::Zeros => values.fill(S::Work::ZERO),
            Start::Cast(input) => here.input(input, values),
            Start::Mix { a, b, weights } => {
                let (to_a, to_b) = (S::Work::from_f64(weights.0), S::Work::from_f64(weights.1));
                here.input(a, values);
                here.input(b, &mut self.other[..n]);
                for (a, b) in values.iter_mut().zip(&self.other) {
                    *a = to_a * *a + to_b * *b;
                }
            }
        }
    }

    /// Keeps what was there before a step; values that were never stored are encoded first.
    #[inline]
    fn remember(&mut self, n: usize, fresh: bool) {
        if fresh {
            S::encode(&self.values[..n], &mut self.bits[..n]);
        }
        self.before[..n].copy_from_slice(&self.values[..n]);
        self.before_bits[..n].copy_from_slice(&self.bits[..n]);
    }

    #[inline]
    fn apply(&mut self, here: &Here<'_>, step: &Step) {
        let n = here.len();
        let values = &mut self.values[..n];
        match step {
            Step::Scale(factor) => {
                let factor = S::Work::from_f64(*factor);
                for value in values {
                    *value = *value * factor;
                }
            }
            Step::Add { input, alpha } => {
                let alpha = S::Work::from_f64(*alpha);
                here.input(*input, &mut self.other[..n]);
                for (value, delta) in values.iter_mut().zip(&mut self.other) {
                    *delta = alpha * *delta;
                    *value = *value + *delta;
                }
            }
            Step::Zero(region) => {
                let bits = &mut self.bits;
                runs(region, &here.recipe.shape, here.window.clone(), |run| {
                    values[run.clone()].fill(S::Work::ZERO);
                    bits[run].fill(S::Bits::default());
                });
            }
        }
    }

    #[inline]
    fn count(&mut self, here: &Here<'_>, step: &Step, outcome: &mut Outcome, k: usize) {
        let n = here.len();
        if here.recipe.computes() {
            S::encode(&self.values[..n], &mut self.bits[..n]);
        }
        let strip = Strip::<S> {
            before: &self.before[..n],
            after: &self.values[..n],
            before_bits: &self.before_bits[..n],
            after_bits: &self.bits[..n],
        };
        let delta = match step {
            Step::Scale(factor) if S::Work::from_f64(*factor) == S::Work::ONE => None,
            Step::Scale(_) => Some(&self.before[..n]),
            Step::Add { .. } => Some(&self.other[..n]),
            Step::Zero(_) => None,
        };
        let tally = &mut outcome.steps[k];
        tally.count(&strip, delta);
        if matches!(step, Step::Scale(_)) && here.recipe.member != Member::None {
            tally.count_member(&strip, here.recipe.member);
        }
    }

    /// How many values do not encode to a finite number.
    #[inline]
    fn beyond_limit(&self, n: usize) -> u32 {
        let mut count = 0;
        for value in &self.values[..n] {
            count += u32::from(!within_limit::<S>(*value));
        }
        count
    }

    #[inline]
    fn finish(&mut self, here: &Here<'_>, chunk: &mut [u8], counted: bool) {
        let n = here.len();
        let encoded = counted && !here.recipe.steps.is_empty();
        if here.recipe.computes() && !encoded {
            S::encode(&self.values[..n], &mut self.bits[..n]);
        }
        S::store(&self.bits[..n], chunk);
    }
}

#[inline]
fn within_limit<S: Stored>(value: S::Work) -> bool {
    value.abs() < S::LIMIT
}

/// Finds out which values are not finite for no reason: those whose live inputs all are. Rare, so it may be slow.
#[cold]
fn blame<S: Stored>(here: &Here<'_>, chunk: &[u8], values: &[S::Work], odd: u32, outcome: &mut Outcome) {
    let n = values.len();
    let mut input = vec![S::Work::ZERO; n];
    let mut sound = vec![true; n];
    let mut and_finite = |sound: &mut [bool], read: &dyn Fn(&mut [S::Work])| {
        read(&mut input);
        for (sound, value) in sound.iter_mut().zip(&input) {
            *sound &= value.is_finite();
        }
    };
    match here.recipe.start {
        Start::InPlace => and_finite(&mut sound, &|values| {
            let mut bits = vec![S::Bits::default(); n];
            S::load(chunk, &mut bits);
            S::decode(&bits, values);
        }),
        Start::Zeros => {}
        Start::Cast(a) => and_finite(&mut sound, &|values| here.input(a, values)),
        Start::Mix { a, b, .. } => {
            and_finite(&mut sound, &|values| here.input(a, values));
            and_finite(&mut sound, &|values| here.input(b, values));
        }
    }
    for step in &here.recipe.steps {
        match step {
            Step::Scale(_) => {}
            Step::Add { input, .. } => and_finite(&mut sound, &|values| here.input(*input, values)),
            Step::Zero(region) => {
                runs(region, &here.recipe.shape, here.window.clone(), |run| sound[run].fill(true));
            }
        }
    }
    let broken = |i: &usize| sound[*i] && !within_limit::<S>(values[*i]);
    let count = (0..n).filter(broken).count() as u64;
    let overflow = (0..n).find(broken).map(|first| (count, (here.window.start + first) as u64));
    outcome.add(&Outcome { overflow, passed: u64::from(odd) - count, ..Outcome::default() });
}

#[cfg(test)]
mod tests;
