//! Finds results that are not finite although all their inputs are.

use super::bits::{Bits, STRIP, load};
use super::counters::Outcome;
use super::dtype::{Float, Values, decode};
use super::simd::{Scalar, Work};
use super::strip::Strip;
use crate::execute::recipe::{Start, Step};

/// Counts the results of a strip that are not finite: overflow where every live input is finite, passed on where one is
/// not. Rare, so it may be slow.
#[cold]
#[inline(never)]
pub(super) fn find<F: Float>(strip: &Strip<'_>, result: &[u8], outcome: &mut Outcome) {
    let recipe = strip.recipe;
    let mut finite = [true; STRIP];
    let read = |input: usize, finite: &mut [bool; STRIP]| {
        let mut values: Values<F::Work> = [F::Work::ZERO; STRIP];
        decode(Scalar, recipe.inputs[input], strip.bytes(input), &mut values);
        for (finite, value) in finite.iter_mut().zip(&values) {
            *finite &= value.is_finite();
        }
    };
    match recipe.start {
        Start::From(input) => read(input, &mut finite),
        Start::Mix { a, b, .. } => {
            read(a, &mut finite);
            read(b, &mut finite);
        }
        Start::Zeros | Start::InPlace => {}
    }
    for step in &recipe.steps {
        match step {
            Step::Scale(_) => {}
            Step::Add { input, .. } => read(*input, &mut finite),
            Step::Zero(region) => strip.fill(region, &mut finite, true),
        }
    }
    let mut bits = [F::Bits::default(); STRIP];
    load(result, &mut bits);
    let (mut count, mut first) = (0, None);
    for (i, bits) in bits.iter().enumerate() {
        if *bits & F::Bits::MAGNITUDE >= F::INFINITY {
            if finite[i] {
                count += 1;
                first = first.or(Some((strip.window.start + i) as u64));
            } else {
                outcome.passed += 1;
            }
        }
    }
    outcome.add(&Outcome { overflow: first.map(|first| (count, first)), ..Outcome::default() });
}
