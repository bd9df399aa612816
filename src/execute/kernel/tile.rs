//! One tile: bytes in, bytes out. Nothing in the kernel knows of files.

use std::marker::PhantomData;

use super::bits::STRIP;
use super::copy::{CountedCopy, copy};
use super::counters::Outcome;
use super::dispatch::run_widest;
use super::dtype::{Bf16, F16, F32, Float};
use super::evaluate::Evaluator;
use super::memory::fence;
use super::simd::{Simd, Task};
use super::strip::{Strip, Tile};
use crate::checkpoint::Dtype;
use crate::execute::recipe::Recipe;

/// Makes a tile's result. `count` asks for counters of each step.
pub(in crate::execute) fn edit(recipe: &Recipe, tile: &mut Tile<'_>, count: bool) -> Outcome {
    let is_float = matches!(recipe.dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32);
    if !is_float || !count && !recipe.computes() {
        copy(recipe, tile);
        return Outcome::new(if count { recipe.steps.len() } else { 0 });
    }
    let past_caches = tile.past_caches;
    let outcome = run_widest(Edit { recipe, tile, count });
    if past_caches {
        fence();
    }
    outcome
}

/// The editing of one tile of floats.
pub(super) struct Edit<'e, 't> {
    pub(super) recipe: &'e Recipe,
    pub(super) tile: &'e mut Tile<'t>,
    pub(super) count: bool,
}

impl Task for Edit<'_, '_> {
    type Output = Outcome;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn work<M: Simd>(self, token: M) -> Outcome {
        let Self { recipe, tile, count } = self;
        match (recipe.dtype, count) {
            (Dtype::F16, true) => strips::<M, F16, true>(token, recipe, tile),
            (Dtype::F16, false) => strips::<M, F16, false>(token, recipe, tile),
            (Dtype::BF16, true) => strips::<M, Bf16, true>(token, recipe, tile),
            (Dtype::BF16, false) => strips::<M, Bf16, false>(token, recipe, tile),
            (_, true) => strips::<M, F32, true>(token, recipe, tile),
            (_, false) => strips::<M, F32, false>(token, recipe, tile),
        }
    }
}

fn strips<M: Simd, F: Float, const COUNT: bool>(token: M, recipe: &Recipe, tile: &mut Tile<'_>) -> Outcome {
    let width = size_of::<F::Bits>();
    let counted = if COUNT { recipe.steps.len() } else { 0 };
    let mut outcome = Outcome::new(counted);
    let mut evaluator = recipe.computes().then(|| Evaluator::<F>::new(counted));
    for (i, out) in tile.out.chunks_mut(STRIP * width).enumerate() {
        let at = i * STRIP;
        let window = tile.first + at..tile.first + at + out.len() / width;
        let strip = Strip { recipe, inputs: tile.inputs, at, window, past_caches: tile.past_caches };
        if let Some(evaluator) = &mut evaluator {
            evaluator.evaluate::<M, COUNT>(token, &strip, out, &mut outcome);
        } else {
            let (strip, outcome) = (&strip, &mut outcome);
            token.run(CountedCopy::<F> { strip, out, outcome, dtype: PhantomData });
        }
    }
    outcome
}

#[cfg(test)]
mod tests;
