//! One tile: decode, apply the whole recipe in working precision, encode once.
//!
//! A tile is worked on in strips that stay in a first-level cache. Bytes in, bytes out: nothing here knows of files.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::f16c::Wide;
use super::float::{Brain, Half, Machine, Plain, STRIP, Single, Stored, Values, Work, decode};
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
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
        #[target_feature(enable = "avx2,f16c")]
        fn wide<S: Stored, const COUNT: bool>(recipe: &Recipe, tile: &mut Tile<'_>) -> Outcome {
            strips::<Wide, S, COUNT>(recipe, tile)
        }
        // SAFETY: the processor has AVX2 and F16C, the only features that `wide` is compiled for.
        return unsafe { wide::<S, COUNT>(recipe, tile) };
    }
    strips::<Plain, S, COUNT>(recipe, tile)
}

#[inline(always)]
fn strips<M: Machine, S: Stored, const COUNT: bool>(recipe: &Recipe, tile: &mut Tile<'_>) -> Outcome {
    let mut outcome = Outcome::new(if COUNT { recipe.steps.len() } else { 0 });
    let mut bench = Bench::<S>::new();
    for (i, chunk) in tile.out.chunks_mut(STRIP * S::BYTES).enumerate() {
        let at = i * STRIP;
        let n = chunk.len() / S::BYTES;
        let here = Here { recipe, inputs: tile.inputs, at, window: tile.first + at..tile.first + at + n };
        let sound = if COUNT {
            bench.counted::<M>(&here, chunk, &mut outcome)
        } else {
            bench.bare::<M>(&here, chunk)
        };
        if !sound {
            blame::<S>(&here, chunk, &bench.values[..n], &mut outcome);
        }
        S::store(&bench.bits[..n], chunk);
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
    #[inline(always)]
    fn input<M: Machine, W: Work>(&self, input: usize, values: &mut Values<W>) {
        let dtype = self.recipe.inputs[input];
        let width = dtype.bitsize() / 8;
        decode::<M, W>(dtype, &self.inputs[input][self.at * width..(self.at + self.len()) * width], values);
    }
}

/// The arrays that a strip is worked on in. Beyond a tensor's end they hold zeros.
struct Bench<S: Stored> {
    values: Values<S::Work>,
    /// A donor's values.
    other: Values<S::Work>,
    bits: [S::Bits; STRIP],
    /// What was there before a step.
    before: Values<S::Work>,
    before_bits: [S::Bits; STRIP],
}

impl<S: Stored> Bench<S> {
    #[inline(always)]
    fn new() -> Self {
        let (values, bits) = ([S::Work::ZERO; STRIP], [S::Bits::default(); STRIP]);
        Self { values, other: values, bits, before: values, before_bits: bits }
    }

    /// The values before the first step, and their bits if they were stored.
    #[inline(always)]
    fn start<M: Machine>(&mut self, here: &Here<'_>, chunk: &[u8]) {
        match here.recipe.start {
            Start::InPlace => {
                let n = here.len();
                S::load(chunk, &mut self.bits[..n]);
                self.bits[n..].fill(S::Bits::default());
                S::decode::<M>(&self.bits, &mut self.values);
            }
            Start::Zeros => {
                self.values.fill(S::Work::ZERO);
                self.bits.fill(S::Bits::default());
            }
            Start::Cast(input) => here.input::<M, _>(input, &mut self.values),
            Start::Mix { a, b, .. } => {
                here.input::<M, _>(a, &mut self.values);
                here.input::<M, _>(b, &mut self.other);
            }
        }
    }

    /// Mixes what [`start`](Self::start) has read, if it is to be mixed.
    #[inline(always)]
    fn mix(&mut self, here: &Here<'_>) {
        if let Start::Mix { weights, .. } = here.recipe.start {
            let (to_a, to_b) = (S::Work::from_f64(weights.0), S::Work::from_f64(weights.1));
            for (a, b) in self.values.iter_mut().zip(&self.other) {
                *a = to_a * *a + to_b * *b;
            }
        }
    }

    /// Makes the strip's bits; false if a value is not finite, and then `values` are the results.
    #[inline(always)]
    fn bare<M: Machine>(&mut self, here: &Here<'_>, chunk: &[u8]) -> bool {
        self.start::<M>(here, chunk);
        let steps = &here.recipe.steps;
        // The last step and the encoding are one pass, and so are a mix and the encoding.
        let (last, others) = match steps.split_last() {
            Some((last, others)) => (Some(last), others),
            None => (None, &[][..]),
        };
        if !steps.is_empty() {
            self.mix(here);
        }
        for step in others {
            self.apply::<M>(here, step);
        }
        let Self { values, other, bits, .. } = self;
        let sound = match (last, here.recipe.start) {
            (Some(Step::Scale(factor)), _) => {
                let factor = S::Work::from_f64(*factor);
                S::encode::<M>(|i| values[i] * factor, bits)
            }
            (Some(Step::Add { input, alpha }), _) => {
                let alpha = S::Work::from_f64(*alpha);
                here.input::<M, _>(*input, other);
                S::encode::<M>(|i| values[i] + alpha * other[i], bits)
            }
            (None, Start::Mix { weights, .. }) => {
                let (to_a, to_b) = (S::Work::from_f64(weights.0), S::Work::from_f64(weights.1));
                S::encode::<M>(|i| to_a * values[i] + to_b * other[i], bits)
            }
            (None, _) => S::encode::<M>(|i| values[i], bits),
            (Some(step @ Step::Zero(_)), _) => {
                self.apply::<M>(here, step);
                S::encode::<M>(|i| self.values[i], &mut self.bits)
            }
        };
        if !sound {
            self.unfused::<M>(here, chunk);
        }
        sound
    }

    /// The same step by step, so that the values are there too.
    #[cold]
    #[inline(never)]
    fn unfused<M: Machine>(&mut self, here: &Here<'_>, chunk: &[u8]) {
        self.start::<M>(here, chunk);
        self.mix(here);
        for step in &here.recipe.steps {
            self.apply::<M>(here, step);
        }
        S::encode_any(|i| self.values[i], &mut self.bits);
    }

    #[inline(always)]
    fn apply<M: Machine>(&mut self, here: &Here<'_>, step: &Step) {
        match step {
            Step::Scale(factor) => {
                let factor = S::Work::from_f64(*factor);
                for value in &mut self.values {
                    *value = *value * factor;
                }
            }
            Step::Add { input, alpha } => {
                let alpha = S::Work::from_f64(*alpha);
                here.input::<M, _>(*input, &mut self.other);
                for (value, other) in self.values.iter_mut().zip(&self.other) {
                    *value = *value + alpha * *other;
                }
            }
            Step::Zero(region) => {
                let Self { values, bits, .. } = self;
                runs(region, &here.recipe.shape, here.window.clone(), |run| {
                    values[run.clone()].fill(S::Work::ZERO);
                    bits[run].fill(S::Bits::default());
                });
            }
        }
    }

    /// Makes the strip's bits and counts what each step does; false if a value is not finite.
    #[inline(always)]
    fn counted<M: Machine>(&mut self, here: &Here<'_>, chunk: &[u8], outcome: &mut Outcome) -> bool {
        self.start::<M>(here, chunk);
        self.mix(here);
        let computes = here.recipe.computes();
        if matches!(here.recipe.start, Start::Cast(_) | Start::Mix { .. }) {
            self.encode::<M>();
        }
        let mut sound = true;
        for (step, tally) in here.recipe.steps.iter().zip(&mut outcome.steps) {
            self.before = self.values;
            self.before_bits = self.bits;
            self.apply::<M>(here, step);
            if computes {
                self.encode::<M>();
            }
            tally.count(&self.strip(), &self.other, step);
            if matches!(step, Step::Scale(_)) && here.recipe.member != Member::None {
                tally.count_member::<M, S>(&self.strip(), here.recipe.member, here.len());
            }
        }
        for value in &self.values {
            sound &= within_limit::<S>(*value);
        }
        sound
    }

    #[inline(always)]
    fn encode<M: Machine>(&mut self) {
        if !S::encode::<M>(|i| self.values[i], &mut self.bits) {
            S::encode_any(|i| self.values[i], &mut self.bits);
        }
    }

    #[inline(always)]
    fn strip(&self) -> Strip<'_, S> {
        Strip {
            before: &self.before,
            after: &self.values,
            before_bits: &self.before_bits,
            after_bits: &self.bits,
        }
    }
}

#[inline(always)]
fn within_limit<S: Stored>(value: S::Work) -> bool {
    value.abs() < S::LIMIT
}

/// Finds out which values are not finite for no reason: those whose live inputs all are. Rare, so it may be slow.
#[cold]
#[inline(never)]
fn blame<S: Stored>(here: &Here<'_>, chunk: &[u8], values: &[S::Work], outcome: &mut Outcome) {
    let n = values.len();
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
            S::load(chunk, &mut bits[..n]);
            S::decode::<Plain>(&bits, values);
        }),
        Start::Zeros => {}
        Start::Cast(a) => and_finite(&mut sound, &|values| here.input::<Plain, _>(a, values)),
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
