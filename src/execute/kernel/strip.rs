//! [`Tile`] and [`Strip`]: stretches of a tensor, and the bytes that belong to them.

use std::ops::Range;

use super::bits::{self, STRIP, Stored};
use super::dtype::Float;
use crate::execute::recipe::Recipe;
use crate::execute::region::runs;
use crate::plan::Region;

/// A stretch of a tensor and the bytes that belong to it.
pub(in crate::execute) struct Tile<'t> {
    /// Index of its first element in the flattened tensor.
    pub(in crate::execute) first: usize,
    /// The bytes of the start if the recipe starts in place, and of the result afterwards.
    pub(in crate::execute) out: &'t mut [u8],
    /// The same stretch of each input.
    pub(in crate::execute) inputs: &'t [&'t [u8]],
    /// Whether the result is not read soon.
    pub(in crate::execute) past_caches: bool,
}

/// At most [`STRIP`] elements of a tile.
pub(super) struct Strip<'t> {
    pub(super) recipe: &'t Recipe,
    /// The bytes of each input for the whole tile.
    pub(super) inputs: &'t [&'t [u8]],
    /// The first element, counted in the tile.
    pub(super) at: usize,
    /// The elements, counted in the flattened tensor.
    pub(super) window: Range<usize>,
    /// Whether the result is not read soon.
    pub(super) past_caches: bool,
}

impl<'t> Strip<'t> {
    pub(super) fn len(&self) -> usize {
        self.window.len()
    }

    /// The bytes of this strip of an input.
    pub(super) fn bytes(&self, input: usize) -> &'t [u8] {
        let width = self.recipe.inputs[input].bitsize() / 8;
        &self.inputs[input][self.at * width..(self.at + self.len()) * width]
    }

    /// This strip of an input if it is a whole one of this dtype.
    pub(super) fn whole<F: Float>(&self, input: usize) -> Option<&'t Stored<F::Bits>> {
        if self.recipe.inputs[input] == F::DTYPE { bits::whole::<F::Bits>(self.bytes(input)) } else { None }
    }

    /// Fills the part of the region that is in this strip.
    pub(super) fn fill<T: Copy>(&self, region: &Region, elements: &mut [T; STRIP], value: T) {
        runs(region, &self.recipe.shape, self.window.clone(), |run| fill_run(&mut elements[run], value));
    }
}

/// Fills a run. Columns give many runs of one element, for which a call of `fill` is slow.
pub(super) fn fill_run<T: Copy>(run: &mut [T], value: T) {
    match run {
        [one] => *one = value,
        run => run.fill(value),
    }
}
