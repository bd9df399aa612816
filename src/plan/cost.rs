//! What executing a program costs in memory: the sizes that the executor works in, and the formula that follows.
//!
//! The planner prints the number and the executor keeps to it, so both take the sizes from here.

use super::{Action, Program, Region, TensorRef};
use crate::checkpoint::Dtype;

/// Elements of one tile: what one thread reads, edits and writes at a time. Tile, donor tile and result fit in a
/// second-level cache.
pub(crate) const TILE: usize = 32_768;

/// How many tiles are in flight at most, each with its own buffers for what it reads. A fixed number, so that the most
/// memory does not depend on the machine.
pub(crate) const IN_FLIGHT: usize = 16;

/// Bytes beyond plain loading that executing a program needs at most: what it needs with all tiles in flight that may
/// be, which takes as many threads.
pub(crate) fn peak_extra_bytes(program: &Program, donor_dtype: impl Fn(&TensorRef) -> Dtype) -> u64 {
    extra_bytes(program, donor_dtype, IN_FLIGHT)
}

/// Bytes beyond plain loading that executing a program needs with so many tiles in flight: its result, and for each
/// tile the bytes of the base and the donors it reads.
///
/// A program that computes nothing, only copies and zeroes, reads what it copies straight into the result.
/// `donor_dtype` tells a donor tensor's dtype.
///
/// ```text
/// result + min(elements, tiles · 32768) · (Σ bytes an element of base and donors)
/// ```
pub(crate) fn extra_bytes(program: &Program, donor_dtype: impl Fn(&TensorRef) -> Dtype, tiles: usize) -> u64 {
    let elements: u64 = program.shape.iter().map(|&n| n as u64).product();
    let in_flight = elements.min((tiles * TILE) as u64);
    let bytes = |count: u64, dtype: Dtype| (count * dtype.bitsize() as u64).div_ceil(8);
    let read: u64 = buffered(program, donor_dtype).map(|dtype| bytes(in_flight, dtype)).sum();
    bytes(elements, program.dtype) + read
}

/// The buffers that a program reads into: how many tiles are in flight at most, how many buffers each of them has, and the
/// bytes of the largest.
pub(crate) fn buffers(program: &Program, donor_dtype: impl Fn(&TensorRef) -> Dtype) -> (usize, usize, u64) {
    let elements = program.shape.iter().product::<usize>();
    let bytes = |dtype: Dtype| (elements.min(TILE) as u64 * dtype.bitsize() as u64).div_ceil(8);
    let (mut count, mut largest) = (0, 0);
    for dtype in buffered(program, donor_dtype) {
        count += 1;
        largest = largest.max(bytes(dtype));
    }
    (elements.div_ceil(TILE).min(IN_FLIGHT), count, largest)
}

/// The live part of a program: everything from its last action that overwrites the whole tensor.
pub(crate) fn live(program: &Program) -> &[(usize, Action)] {
    let start = program.actions.iter().rposition(|(_, action)| overwrites(action)).unwrap_or(0);
    program.actions.get(start..).unwrap_or_default()
}

/// Whether the base's bytes are read.
pub(crate) fn reads_base(program: &Program) -> bool {
    !live(program).first().is_some_and(|(_, action)| overwrites(action))
}

/// Whether nothing of what was there before remains.
fn overwrites(action: &Action) -> bool {
    match action {
        Action::Replace { .. } | Action::Blend { .. } | Action::Zero { region: Region::Whole } => true,
        Action::Scale { .. } | Action::Add { .. } | Action::Zero { region: Region::Slices { .. } } => false,
    }
}

/// The donor tensors that an action reads; at ratio 0 or 1 a blend reads one.
pub(crate) fn reads(action: &Action) -> impl Iterator<Item = &TensorRef> {
    let (first, second) = match action {
        Action::Scale { .. } | Action::Zero { .. } => (None, None),
        Action::Add { donor, .. } | Action::Replace { donor } => (Some(donor), None),
        Action::Blend { a, ratio, .. } if *ratio <= 0.0 => (Some(a), None),
        Action::Blend { b, ratio, .. } if *ratio >= 1.0 => (Some(b), None),
        Action::Blend { a, b, .. } => (Some(a), Some(b)),
    };
    first.into_iter().chain(second)
}

/// The dtypes of the tensors that are read into buffers.
fn buffered<'p>(
    program: &'p Program,
    donor_dtype: impl Fn(&TensorRef) -> Dtype + 'p,
) -> impl Iterator<Item = Dtype> + 'p {
    let computes = computes(program, &donor_dtype);
    let base = reads_base(program).then_some(program.dtype);
    let donors = live(program).iter().flat_map(|(_, action)| reads(action));
    base.into_iter().chain(donors.map(donor_dtype)).filter(move |_| computes)
}

/// Whether values are computed. If not, bits are copied or zeroed.
fn computes(program: &Program, donor_dtype: &impl Fn(&TensorRef) -> Dtype) -> bool {
    live(program).iter().any(|(_, action)| match action {
        Action::Scale { .. } | Action::Add { .. } => true,
        Action::Zero { .. } => false,
        Action::Replace { .. } | Action::Blend { .. } => {
            let mut donors = reads(action);
            donors.next().is_some_and(|donor| donor_dtype(donor) != program.dtype) || donors.next().is_some()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Key;
    use crate::surgery::Method;

    fn donor() -> TensorRef {
        TensorRef { donor: 0, key: Key::from("x") }
    }

    #[track_caller]
    fn check(shape: &[usize], dtype: Dtype, donors: Dtype, actions: Vec<Action>, expected: u64) {
        let actions = actions.into_iter().map(|action| (0, action)).collect();
        let program = Program {
            target: 0,
            key: Key::from("x"),
            dtype,
            shape: shape.to_vec(),
            actions,
            shared_with: None,
        };
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

    #[test]
    fn what_is_overwritten_costs_nothing() {
        let add = Action::Add { donor: donor(), alpha: 1.0 };
        check(&[9], Dtype::F16, Dtype::F16, vec![add, Action::Zero { region: Region::Whole }], 18);
    }
}
