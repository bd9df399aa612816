//! Sums up what executing a plan reads and writes.

use super::action::TensorRef;
use super::cost;
use super::donor::Donor;
use super::plan::Summary;
use super::program::Program;
use crate::checkpoint::{Dtype, TensorInfo};

impl Summary {
    /// Counts what executing the programs reads and writes.
    pub(super) fn new(operations: usize, programs: &[Program], donors: &[Donor]) -> Self {
        let info =
            |tensor: &TensorRef| donors.get(tensor.donor.position())?.weights.index.get(tensor.key.as_str());
        let dtype = |tensor: &TensorRef| info(tensor).map_or(Dtype::F32, |info| info.dtype);
        let mut summary = Self { operations, tensors_edited: programs.len(), ..Self::default() };
        for program in programs {
            let result = program.result_bytes();
            summary.result_bytes += result;
            summary.base_bytes += if program.reads_base() { result } else { 0 };
            for (_, action) in program.actions() {
                let bytes = |tensor| info(tensor).map_or(0, TensorInfo::byte_length);
                summary.donor_bytes += action.passes() * action.reads().map(bytes).sum::<u64>();
            }
            let peak = cost::peak_extra_bytes(program, dtype);
            summary.peak_extra_bytes = summary.peak_extra_bytes.max(peak);
        }
        summary
    }
}
