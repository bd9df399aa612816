//! Doing it, on host memory, with rayon. No MLX, no policy: the plan says everything.
//!
//! ```text
//! Program ──resolve──▶ Recipe ─┐
//! base bytes ──────────────────┼─ tile by tile ─▶ result bytes ─▶ caller's buffer, SHA-256
//! donor bytes ─────────────────┘                 └─▶ Tally ─▶ Report
//! ```
//!
//! Every number is computed in one order, whatever the number of threads: results, report and digest are the same bit
//! for bit on every machine.

mod error;
mod report;

pub use error::ExecuteError;
pub use report::{OperationReport, Report};

use crate::plan::{Plan, Program};

/// Carries out a plan's programs, one at a time, in the plan's (key) order.
#[derive(Debug)]
pub struct Executor<'p> {
    plan: &'p Plan,
}

impl<'p> Executor<'p> {
    /// Checks that base and donors are still the files that were planned with.
    ///
    /// # Errors
    /// [`ExecuteError::Changed`].
    pub fn new(plan: &'p Plan) -> Result<Self, ExecuteError> {
        todo!()
    }

    /// The same, without figures and digest: as fast as memory.
    ///
    /// # Errors
    /// [`ExecuteError::Changed`].
    pub fn without_report(plan: &'p Plan) -> Result<Self, ExecuteError> {
        todo!()
    }

    /// Runs one program. `out` is exactly as long as the tensor ([`Program::result_bytes`]) and holds its bytes
    /// afterwards: base dtype, little-endian, row-major. What it held before does not matter.
    ///
    /// # Errors
    /// A file that changed or cannot be read, or a result that is not finite; `out` is then of no use.
    ///
    /// # Panics
    /// If `out` has another length.
    pub fn run(&mut self, program: &Program, out: &mut [u8]) -> Result<(), ExecuteError> {
        todo!()
    }

    /// Checks again that base and donors are the files that were planned with, and sums up.
    ///
    /// # Errors
    /// [`ExecuteError::Changed`]: then nothing that was computed may be used.
    pub fn finish(self) -> Result<Report, ExecuteError> {
        todo!()
    }
}
