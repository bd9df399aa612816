//! Memory that executing a program takes: the executor's buffer sizes, and the formula for the peak.
//!
//! The planner prints the peak and the executor keeps within it, so both use the sizes defined here.

use super::action::TensorRef;
use super::program::Program;
use crate::checkpoint::Dtype;

/// Elements of one tile: what one thread reads, edits and writes at a time. Tile, donor tile and result fit in a
/// second-level cache.
pub(crate) const TILE: usize = 32_768;

/// Maximum number of tiles in flight, each with its own input buffers. It is fixed, so that peak memory does not depend on
/// the machine.
pub(crate) const IN_FLIGHT: usize = 16;

/// Peak bytes beyond plain loading while a program runs, with [`IN_FLIGHT`] tiles in flight.
pub(crate) fn peak_extra_bytes(program: &Program, donor_dtype: impl Fn(&TensorRef) -> Dtype) -> u64 {
    extra_bytes(program, donor_dtype, IN_FLIGHT)
}

/// Bytes beyond plain loading while a program runs with `tiles` tiles in flight: its result, and for each tile the bytes of
/// the base and the donors it reads. `donor_dtype` gives a donor tensor's dtype.
///
/// A program that computes nothing, only copies and zeroes, reads what it copies directly into the result.
///
/// ```text
/// result + min(elements, tiles · 32768) · (Σ bytes an element of base and donors)
/// ```
pub(crate) fn extra_bytes(program: &Program, donor_dtype: impl Fn(&TensorRef) -> Dtype, tiles: usize) -> u64 {
    let elements: u64 = program.shape().iter().map(|&n| n as u64).product();
    let in_flight = elements.min((tiles * TILE) as u64);
    let bytes = |count: u64, dtype: Dtype| (count * dtype.bitsize() as u64).div_ceil(8);
    let read: u64 = buffered(program, donor_dtype).map(|dtype| bytes(in_flight, dtype)).sum();
    bytes(elements, program.dtype()) + read
}

/// The buffers that a program reads into: the maximum number of tiles in flight, the number of buffers of each, and the
/// bytes of the largest.
pub(crate) fn buffers(program: &Program, donor_dtype: impl Fn(&TensorRef) -> Dtype) -> (usize, usize, u64) {
    let elements = program.shape().iter().product::<usize>();
    let bytes = |dtype: Dtype| (elements.min(TILE) as u64 * dtype.bitsize() as u64).div_ceil(8);
    let (mut count, mut largest) = (0, 0);
    for dtype in buffered(program, donor_dtype) {
        count += 1;
        largest = largest.max(bytes(dtype));
    }
    (elements.div_ceil(TILE).min(IN_FLIGHT), count, largest)
}

/// The dtypes of the tensors that are read into buffers.
fn buffered<'p>(
    program: &'p Program,
    donor_dtype: impl Fn(&TensorRef) -> Dtype + 'p,
) -> impl Iterator<Item = Dtype> + 'p {
    let computes = program.actions().iter().any(|(_, action)| action.computes(program.dtype(), &donor_dtype));
    let base = program.reads_base().then_some(program.dtype());
    let donors = program.actions().iter().flat_map(|(_, action)| action.reads());
    base.into_iter().chain(donors.map(donor_dtype)).filter(move |_| computes)
}

#[cfg(test)]
mod tests {
    use super::super::action::{Action, Region};
    use super::super::ids::DonorId;
    use super::*;
    use crate::checkpoint::Key;
    use crate::surgery::Method;

    fn donor() -> TensorRef {
        TensorRef { donor: DonorId::new(0), key: Key::from("x") }
    }

    #[track_caller]
    fn check(shape: &[usize], dtype: Dtype, donors: Dtype, actions: Vec<Action>, expected: u64) {
        let program = Program::of(dtype, shape, actions);
        assert_eq!(peak_extra_bytes(&program, |_| donors), expected);
    }

    #[test]
    fn scaling_needs_the_result_and_tiles_of_the_base() {
        let tiles = 16 * 32_768 * 2;
        check(
            &[1000, 1000],
            Dtype::BF16,
            Dtype::BF16,
            vec![Action::Scale { factor: 2.0 }],
            2_000_000 + tiles,
        );
    }

    #[test]
    fn zeroing_needs_the_result_alone() {
        let region = Region::Slices { axis: 0, ranges: std::iter::once(1..2).collect() };
        check(&[1000, 1000], Dtype::BF16, Dtype::BF16, vec![Action::Zero { region }], 2_000_000);
    }

    #[test]
    fn an_add_needs_the_result_and_tiles_of_base_and_donor() {
        let add = Action::Add { donor: donor(), alpha: 1.0 };
        check(&[7], Dtype::BF16, Dtype::F32, vec![add.clone()], 14 + 7 * (2 + 4));
        check(&[40_000], Dtype::BF16, Dtype::F32, vec![add.clone()], 80_000 + 40_000 * (2 + 4));
        check(&[100, 32_768], Dtype::F32, Dtype::F16, vec![add], 100 * 32_768 * 4 + 16 * 32_768 * (4 + 2));
    }

    #[test]
    fn a_replaced_tensor_and_a_blend_at_its_end_are_read_into_the_result() {
        let replace = Action::Replace { donor: donor() };
        check(&[9], Dtype::U32, Dtype::U32, vec![replace], 36);
        let blend = |ratio| Action::Blend { a: donor(), b: donor(), ratio, method: Method::Lerp };
        check(&[9], Dtype::BF16, Dtype::BF16, vec![blend(1.0)], 18);
        check(&[9], Dtype::BF16, Dtype::F32, vec![blend(0.0)], 18 + 36);
        check(&[9], Dtype::BF16, Dtype::F32, vec![blend(0.5)], 18 + 72);
    }
}
