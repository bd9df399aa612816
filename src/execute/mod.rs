//! Executes plans on host memory, with rayon. No MLX and no decisions: the plan says everything.
//!
//! ```text
//! Program ──resolve──▶ Recipe ─┐
//! base bytes ──────────────────┼─ tile by tile ─▶ result bytes ─▶ caller's buffer, SHA-256
//! donor bytes ─────────────────┘                 └─▶ Counters ─▶ Report
//! ```
//!
//! Every number is computed in one order, whatever the number of threads: results, report and digest are bit-identical
//! on every machine.

mod blend;
mod buffers;
mod diff;
mod error;
mod export;
mod kernel;
mod program_run;
mod recipe;
mod region;
mod report;

#[cfg(test)]
pub(crate) use diff::Tie;
pub(crate) use diff::{Comparison, Figures, NotFinite, Verdict, Which, diff, diff_plan};
pub use error::ExecuteError;
pub(crate) use error::Place;
pub use export::{ExportError, Exported, Stop, export};
pub(crate) use export::{NewFile, Stopped, clear_leftovers, write};
pub use report::{OperationReport, Report};

use std::fmt;

use sha2::{Digest, Sha256};

use crate::checkpoint::Shard;
use crate::plan::cost::{self, IN_FLIGHT, TILE};
use crate::plan::{Plan, Program, TensorRef};
use buffers::{Pool, ROOM_TO_SHIFT};
use kernel::Outcome;
use program_run::{FillOptions, ProgramRun};
use report::Ledger;

/// Elements computed while the previous ones are hashed.
const WINDOW: usize = 4 * IN_FLIGHT * TILE;

/// Carries out a plan's programs, one at a time, in the plan's (key) order.
pub struct Executor<'p> {
    plan: &'p Plan,
    pool: Pool,
    windows: [Vec<u8>; 2],
    /// The report's numbers, if they are asked for.
    ledger: Option<Ledger>,
    /// The digest of all results so far, if it is asked for.
    digest: Option<Sha256>,
}

impl<'p> Executor<'p> {
    /// Checks that base and donors are still the files that were planned.
    ///
    /// # Errors
    /// [`ExecuteError::Changed`].
    pub fn new(plan: &'p Plan) -> Result<Self, ExecuteError> {
        Ok(Self { digest: Some(Sha256::new()), ..Self::without_digest(plan)? })
    }

    /// The same without [`Report::weights_sha256`], which one thread has to compute. Norms are then summed over other pieces
    /// and may differ in their last digits.
    ///
    /// # Errors
    /// [`ExecuteError::Changed`].
    pub fn without_digest(plan: &'p Plan) -> Result<Self, ExecuteError> {
        Ok(Self { ledger: Some(Ledger::new(plan)), ..Self::without_report(plan)? })
    }

    /// The same without numbers and digest: as fast as memory.
    ///
    /// # Errors
    /// [`ExecuteError::Changed`].
    pub fn without_report(plan: &'p Plan) -> Result<Self, ExecuteError> {
        check_unchanged(plan)?;
        Ok(Self { plan, pool: Pool::default(), windows: Default::default(), ledger: None, digest: None })
    }

    /// Runs one program. `out` is exactly as long as the tensor ([`Program::result_bytes`]) and holds its bytes
    /// afterwards: base dtype, little-endian, row-major. What it held before does not matter.
    ///
    /// # Errors
    /// A file changed or cannot be read, or a result is not finite; the contents of `out` are then undefined.
    ///
    /// # Panics
    /// If `out` has a different length.
    pub fn run(&mut self, program: &Program, out: &mut [u8]) -> Result<(), ExecuteError> {
        assert_eq!(out.len() as u64, program.result_bytes(), "the buffer is as long as the tensor");
        self.release_buffers(program);
        let run = ProgramRun::new(self.plan, program, &self.pool)?;
        // A result that is hashed is read soon.
        let options = FillOptions { count: self.ledger.is_some(), past_caches: self.digest.is_none() };
        let outcome = match &mut self.digest {
            None => run.fill(0, out, &self.pool, options)?,
            Some(digest) => {
                let mut outcome = Outcome::new(run.recipe.steps.len());
                let mut done: &[u8] = &[];
                for (i, window) in out.chunks_mut(WINDOW * run.recipe.width()).enumerate() {
                    let fill = || run.fill(i * WINDOW, window, &self.pool, options);
                    let (next, ()) = rayon::join(fill, || digest.update(done));
                    outcome.add(&next?);
                    done = window;
                }
                digest.update(done);
                outcome
            }
        };
        if let Some(ledger) = &mut self.ledger {
            ledger.enter(program, &run, &outcome);
        }
        check_finite(self.plan, program, &outcome)
    }

    /// Runs one program and passes its result on in pieces, each while the next is computed: two windows in memory, however
    /// large the tensor is.
    pub(crate) fn stream<E: From<ExecuteError> + Send>(
        &mut self,
        program: &Program,
        sink: &mut (dyn FnMut(&[u8]) -> Result<(), E> + Send),
    ) -> Result<(), E> {
        let run = ProgramRun::new(self.plan, program, &self.pool)?;
        let (width, elements) = (run.recipe.width(), run.recipe.elements());
        let mut outcome = Outcome::new(run.recipe.steps.len());
        let [mut current, mut other] = self.windows.each_mut();
        let options = FillOptions { count: self.ledger.is_some(), past_caches: false };
        let mut done: &[u8] = &[];
        for first in (0..elements).step_by(WINDOW) {
            let bytes = WINDOW.min(elements - first) * width;
            if current.len() < bytes + ROOM_TO_SHIFT {
                current.resize(bytes + ROOM_TO_SHIFT, 0);
            }
            let shift = run.shift(first, current);
            let window = &mut current[shift..shift + bytes];
            let fill = || run.fill(first, window, &self.pool, options);
            let digest = self.digest.as_mut();
            let (next, passed_on) = rayon::join(fill, || pass_on(done, digest, sink));
            passed_on?;
            outcome.add(&next?);
            (current, other) = (other, current);
            done = &other[shift..shift + bytes];
        }
        pass_on(done, self.digest.as_mut(), sink)?;
        if let Some(ledger) = &mut self.ledger {
            ledger.enter(program, &run, &outcome);
        }
        Ok(check_finite(self.plan, program, &outcome)?)
    }

    /// Checks again that base and donors are the files that were planned, and completes the report.
    ///
    /// # Errors
    /// [`ExecuteError::Changed`]: nothing that was computed may then be used.
    pub fn finish(self) -> Result<Report, ExecuteError> {
        check_unchanged(self.plan)?;
        let digest = self.digest.map(Sha256::finalize);
        Ok(self.ledger.map_or_else(Report::default, |ledger| ledger.close(digest.as_deref())))
    }

    /// Frees the buffers of earlier programs if reusing them, each as long as this program may need it, could take more
    /// memory than the plan says.
    fn release_buffers(&mut self, program: &Program) {
        let dtype = |donor: &TensorRef| self.plan.donor_tensor(donor).1.dtype;
        let (tiles, buffers, bytes) = cost::buffers(program, dtype);
        let needed = program.result_bytes() + self.pool.bytes_after(tiles, buffers, bytes);
        if needed > self.plan.summary().peak_extra_bytes {
            self.pool.clear();
        }
    }
}

impl fmt::Debug for Executor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("plan", &self.plan.digest()).finish_non_exhaustive()
    }
}

/// Hashes finished bytes and passes them on, in parallel.
fn pass_on<E: Send>(
    done: &[u8],
    digest: Option<&mut Sha256>,
    sink: &mut (dyn FnMut(&[u8]) -> Result<(), E> + Send),
) -> Result<(), E> {
    if done.is_empty() {
        return Ok(());
    }
    let hash = || digest.map(|digest| digest.update(done));
    rayon::join(hash, || sink(done)).1
}

fn check_finite(plan: &Plan, program: &Program, outcome: &Outcome) -> Result<(), ExecuteError> {
    let Some((count, first)) = outcome.overflow else { return Ok(()) };
    let steps = program.actions().iter().map(|(step, _)| plan.step(*step));
    let mut operations: Vec<Place> = steps.map(Place::of).collect();
    operations.dedup();
    Err(ExecuteError::NotFinite { key: program.key().clone(), count, first, operations })
}

/// Checks that base and donors are the files that were planned.
fn check_unchanged(plan: &Plan) -> Result<(), ExecuteError> {
    let donors = plan.donors().iter().flat_map(|donor| &donor.weights.shards);
    for shard in plan.base().weights.shards.iter().chain(donors) {
        // A path that no longer exists counts as changed.
        if !shard.unchanged().unwrap_or(false) {
            return Err(changed(shard));
        }
    }
    Ok(())
}

fn changed(shard: &Shard) -> ExecuteError {
    ExecuteError::Changed { path: shard.path.clone() }
}

#[cfg(test)]
mod tests;
