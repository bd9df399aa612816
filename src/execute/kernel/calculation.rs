//! [`Calculation`]: the arithmetic of a step, and the elements that it is meant to change.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use super::dtype::{Float, LanesOf};
use super::simd::{Lanes as _, Simd, Work};

/// How to tell which elements a step is meant to change.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Cause {
    /// Those where the stored base or operand is not 0.
    Bits,
    /// Those where the value is not 0.
    Values,
    /// Those that change.
    Changes,
}

/// The arithmetic of a step.
pub(super) trait Calculation<F: Float> {
    /// Whether it has an operand beside the base.
    const BINARY: bool;
    /// Whether it scales, which rounding errors are counted for.
    const SCALES: bool = false;
    fn apply<M: Simd>(&self, token: M, base: LanesOf<F, M>, operand: LanesOf<F, M>) -> LanesOf<F, M>;
    /// The values that are not 0 where the result is meant to differ from the base.
    fn delta<M: Simd>(&self, _: M, base: LanesOf<F, M>, _: LanesOf<F, M>) -> LanesOf<F, M> {
        base
    }
    fn cause(&self, _base_stored: bool, _operand_stored: bool) -> Cause {
        Cause::Changes
    }
}

/// The base.
pub(super) struct Unchanged;

/// The base times this.
pub(super) struct Scaled<W>(pub(super) W);

/// The base plus this times the operand.
pub(super) struct Added<W>(pub(super) W);

/// The base and the operand, each times its weight.
pub(super) struct Mixed<W>(pub(super) W, pub(super) W);

impl<F: Float> Calculation<F> for Unchanged {
    const BINARY: bool = false;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apply<M: Simd>(&self, _: M, base: LanesOf<F, M>, _: LanesOf<F, M>) -> LanesOf<F, M> {
        base
    }
}

impl<W: Work> Scaled<W> {
    /// Whether exactly the elements that are not 0 are meant to change: not by a factor of 1.
    pub(super) fn cause_of_bits<F: Float<Work = W>>(&self) -> bool {
        self.0 != W::ONE
    }
}

impl<F: Float> Calculation<F> for Scaled<F::Work> {
    const BINARY: bool = false;
    const SCALES: bool = true;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apply<M: Simd>(&self, token: M, base: LanesOf<F, M>, _: LanesOf<F, M>) -> LanesOf<F, M> {
        base * LanesOf::<F, M>::splat(token, self.0)
    }

    fn cause(&self, base_stored: bool, _: bool) -> Cause {
        match (self.cause_of_bits::<F>(), base_stored) {
            (true, true) => Cause::Bits,
            (true, false) => Cause::Values,
            (false, _) => Cause::Changes,
        }
    }
}

impl<W: Work> Added<W> {
    /// Whether exactly the elements where the operand is not 0 are meant to change: no product with it vanishes.
    pub(super) fn cause_of_bits<F: Float<Work = W>>(&self) -> bool {
        self.0 * F::MIN_POSITIVE != W::ZERO
    }
}

impl<F: Float> Calculation<F> for Added<F::Work> {
    const BINARY: bool = true;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apply<M: Simd>(&self, token: M, base: LanesOf<F, M>, operand: LanesOf<F, M>) -> LanesOf<F, M> {
        base + Calculation::<F>::delta(self, token, base, operand)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn delta<M: Simd>(&self, token: M, _: LanesOf<F, M>, operand: LanesOf<F, M>) -> LanesOf<F, M> {
        LanesOf::<F, M>::splat(token, self.0) * operand
    }

    fn cause(&self, _: bool, operand_stored: bool) -> Cause {
        if operand_stored && self.cause_of_bits::<F>() { Cause::Bits } else { Cause::Values }
    }
}

impl<F: Float> Calculation<F> for Mixed<F::Work> {
    const BINARY: bool = true;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apply<M: Simd>(&self, token: M, base: LanesOf<F, M>, operand: LanesOf<F, M>) -> LanesOf<F, M> {
        LanesOf::<F, M>::splat(token, self.0) * base + LanesOf::<F, M>::splat(token, self.1) * operand
    }
}
