//! [`ProgramRun`]: a program with its files. Reads tiles by position, directly into the result or into reused buffers, and
//! runs the recipe over them with rayon.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::ExecuteError;
use super::blend::{self, BLOCK, BlockSums, Sums};
use super::buffers::{Buffers, Pool, ROOM_TO_SHIFT, shift};
use super::kernel::{Outcome, Tile, edit};
use super::recipe::{Recipe, Start, Step};
use crate::checkpoint::{Dtype, Key, Shard};
use crate::plan::cost::{IN_FLIGHT, TILE};
use crate::plan::{Action, Method, Plan, Program, Region, StepId, TensorRef};

/// Maximum number of pieces of a stretch: many more than processors, which are not equally fast.
const MAX_PIECES: usize = 256;

/// How a stretch of a result is computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct FillOptions {
    /// Count changes.
    pub(super) count: bool,
    /// Write past the caches, because nothing reads the result soon.
    pub(super) past_caches: bool,
}

/// A tensor in a file.
#[derive(Debug)]
struct Input<'p> {
    shard: &'p Shard,
    key: Key,
    donor: bool,
    dtype: Dtype,
    range: Range<u64>,
}

/// A program, ready to run.
#[derive(Debug)]
pub(super) struct ProgramRun<'p> {
    pub(super) recipe: Recipe,
    /// What the result's buffer is filled with first, if the recipe starts in place.
    begin: Option<Input<'p>>,
    inputs: Vec<Input<'p>>,
    /// The step of the plan that the start belongs to, if the start is an action.
    pub(super) start_of: Option<StepId>,
    /// The step of the plan that each step of the recipe belongs to.
    pub(super) step_of: Vec<StepId>,
    /// Whether a SLERP had to be a LERP.
    pub(super) fell_back: bool,
    /// Bytes read of the base and of donors, all passes together.
    pub(super) base_bytes: u64,
    pub(super) donor_bytes: u64,
}

impl<'p> ProgramRun<'p> {
    /// Resolves what is the same for all tiles; for a SLERP this takes a pass over both donors.
    pub(super) fn new(plan: &'p Plan, program: &Program, pool: &Pool) -> Result<Self, ExecuteError> {
        let mut run = Self {
            recipe: Recipe {
                dtype: program.dtype(),
                shape: program.shape().to_vec(),
                start: Start::InPlace,
                steps: Vec::new(),
                inputs: Vec::new(),
                member: program.member(),
            },
            begin: None,
            inputs: Vec::new(),
            start_of: None,
            step_of: Vec::new(),
            fell_back: false,
            base_bytes: 0,
            donor_bytes: 0,
        };
        if program.reads_base() {
            let (shard, range) = plan.base_tensor(program);
            let key = program.key().clone();
            run.base_bytes = range.end - range.start;
            run.begin = Some(Input { shard, key, donor: false, dtype: program.dtype(), range });
        }
        for (step, action) in program.actions() {
            let edit = match action {
                Action::Scale { factor } => Step::Scale(*factor),
                Action::Add { donor, alpha } => Step::Add { input: run.input(plan, donor), alpha: *alpha },
                Action::Zero { region: region @ Region::Slices { .. } } => Step::Zero(region.clone()),
                // What overwrites the whole tensor comes first: the plan has nothing before it.
                Action::Zero { region: Region::Whole } => {
                    run.start(*step, Start::Zeros);
                    continue;
                }
                Action::Replace { donor } => {
                    let copy = run.copy(plan, donor);
                    run.start(*step, copy);
                    continue;
                }
                Action::Blend { ratio, method, .. } => {
                    let mut donors = action.reads();
                    let blend = match (donors.next(), donors.next()) {
                        (Some(a), Some(b)) => run.blend(plan, (a, b), *ratio, *method, pool)?,
                        (Some(only), None) => run.copy(plan, only),
                        (None, _) => unreachable!("a blend reads a donor"),
                    };
                    run.start(*step, blend);
                    continue;
                }
            };
            run.recipe.steps.push(edit);
            run.step_of.push(*step);
        }
        if run.recipe.computes()
            && let Some(begin) = run.begin.take()
        {
            // Inputs of arithmetic are read into small buffers, and each result is written once.
            run.recipe.start = Start::From(run.inputs.len());
            run.recipe.inputs.push(begin.dtype);
            run.inputs.push(begin);
        }
        Ok(run)
    }

    /// Makes an action of the plan the start.
    fn start(&mut self, step: StepId, start: Start) {
        self.start_of = Some(step);
        self.recipe.start = start;
    }

    /// The start that is a donor's tensor: its bits where the dtype is the result's, else its values.
    fn copy(&mut self, plan: &'p Plan, donor: &TensorRef) -> Start {
        let input = self.open(plan, donor);
        if input.dtype == self.recipe.dtype {
            self.begin = Some(input);
            return Start::InPlace;
        }
        self.recipe.inputs.push(input.dtype);
        self.inputs.push(input);
        Start::From(self.inputs.len() - 1)
    }

    /// The start that is a mix of two donors' tensors.
    fn blend(
        &mut self,
        plan: &'p Plan,
        (a, b): (&TensorRef, &TensorRef),
        ratio: f64,
        method: Method,
        pool: &Pool,
    ) -> Result<Start, ExecuteError> {
        let (a, b) = (self.input(plan, a), self.input(plan, b));
        let weights = match method {
            Method::Lerp => None,
            Method::Slerp => {
                self.donor_bytes *= 2;
                let weights = blend::slerp(&self.sums(pool)?, ratio);
                self.fell_back = weights.is_none();
                weights
            }
        };
        Ok(Start::Mix { a, b, weights: weights.unwrap_or_else(|| blend::lerp(ratio)) })
    }

    fn open(&mut self, plan: &'p Plan, donor: &TensorRef) -> Input<'p> {
        let (shard, info, range) = plan.donor_tensor(donor);
        self.donor_bytes += range.end - range.start;
        Input { shard, key: donor.key.clone(), donor: true, dtype: info.dtype, range }
    }

    /// The number of a donor tensor among the inputs.
    fn input(&mut self, plan: &'p Plan, donor: &TensorRef) -> usize {
        let input = self.open(plan, donor);
        self.recipe.inputs.push(input.dtype);
        self.inputs.push(input);
        self.inputs.len() - 1
    }

    /// The sums that the angle between the two inputs follows from.
    fn sums(&self, pool: &Pool) -> Result<Sums, ExecuteError> {
        let elements = self.recipe.elements();
        let block = |at: usize| at * BLOCK..((at + 1) * BLOCK).min(elements);
        let blocks = 0..elements.div_ceil(BLOCK);
        let sums = in_order(blocks, pool, |at, buffers| self.block_sums(block(at), buffers))?;
        let mut total = Sums::default();
        for block in &sums {
            total.add(block);
        }
        Ok(total)
    }

    fn block_sums(&self, elements: Range<usize>, buffers: &mut Buffers) -> Result<Sums, ExecuteError> {
        let mut sums = BlockSums::default();
        for first in elements.clone().step_by(TILE) {
            let bytes = self.read(first..(first + TILE).min(elements.end), buffers)?;
            if let [a, b] = bytes[..] {
                sums.feed((self.recipe.inputs[0], a), (self.recipe.inputs[1], b));
            }
        }
        Ok(sums.total())
    }

    /// Where in a buffer with [`ROOM_TO_SHIFT`] to put the stretch that begins at element `first`.
    pub(super) fn shift(&self, first: usize, buffer: &[u8]) -> usize {
        self.begin.as_ref().map_or(0, |begin| shift(buffer.as_ptr(), begin.offset(first)))
    }

    /// Computes the stretch of the result that begins at element `first`, a multiple of the tile.
    pub(super) fn fill(
        &self,
        first: usize,
        out: &mut [u8],
        pool: &Pool,
        options: FillOptions,
    ) -> Result<Outcome, ExecuteError> {
        let tile = TILE * self.recipe.width();
        let tiles = out.len().div_ceil(tile).div_ceil(MAX_PIECES).max(1);
        let pieces = out.chunks_mut(tiles * tile).enumerate();
        let outcomes = in_order(pieces, pool, |(piece, out), buffers| {
            let first = first + piece * tiles * TILE;
            let mut outcome = Outcome::new(self.recipe.steps.len());
            for (i, out) in out.chunks_mut(tile).enumerate() {
                outcome.add(&self.tile(first + i * TILE, out, buffers, options)?);
            }
            Ok(outcome)
        })?;
        let mut outcome = Outcome::new(self.recipe.steps.len());
        for piece in &outcomes {
            outcome.add(piece);
        }
        Ok(outcome)
    }

    fn tile(
        &self,
        first: usize,
        out: &mut [u8],
        buffers: &mut Buffers,
        FillOptions { count, past_caches }: FillOptions,
    ) -> Result<Outcome, ExecuteError> {
        let elements = first..first + out.len() / self.recipe.width();
        if let Some(begin) = &self.begin {
            begin.read(&elements, out)?;
        }
        let inputs = self.read(elements, buffers)?;
        Ok(edit(&self.recipe, &mut Tile { first, out, inputs: &inputs, past_caches }, count))
    }

    /// Reads the same elements of all inputs.
    fn read<'b>(
        &self,
        elements: Range<usize>,
        buffers: &'b mut Buffers,
    ) -> Result<Vec<&'b [u8]>, ExecuteError> {
        if buffers.len() < self.inputs.len() {
            buffers.resize_with(self.inputs.len(), Vec::new);
        }
        self.inputs
            .iter()
            .zip(buffers)
            .map(|(input, buffer)| {
                let bytes = elements.len() * (input.dtype.bitsize() / 8);
                let room = bytes + ROOM_TO_SHIFT;
                if buffer.len() < room {
                    buffer.reserve_exact(room - buffer.len());
                    buffer.resize(room, 0);
                }
                let shift = shift(buffer.as_ptr(), input.offset(elements.start));
                let buffer = &mut buffer[shift..shift + bytes];
                input.read(&elements, buffer)?;
                Ok(&*buffer)
            })
            .collect()
    }
}

/// Works on pieces with all threads, at most [`IN_FLIGHT`] at a time, each thread taking the next piece when it is done, and
/// returns the results in the order of the pieces. After an error no more pieces are started; the first error is returned.
/// A single piece runs on the caller's thread, because waking others would take longer.
fn in_order<P: Send, T: Send>(
    pieces: impl ExactSizeIterator<Item = P> + Send,
    pool: &Pool,
    work: impl Fn(P, &mut Buffers) -> Result<T, ExecuteError> + Sync,
) -> Result<Vec<T>, ExecuteError> {
    let workers = pieces.len().min(IN_FLIGHT);
    let queue = Mutex::new(pieces.enumerate());
    let failed = AtomicBool::new(false);
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.load(Ordering::Relaxed) { None } else { queue.next() }
    };
    let worker = |_| {
        pool.lend(|buffers| {
            let mut made = Vec::new();
            while let Some((i, piece)) = next() {
                let result = work(piece, buffers);
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                made.push((i, result));
            }
            made
        })
    };
    let mut made: Vec<_> = match workers {
        0 | 1 => worker(0),
        _ => (0..workers).into_par_iter().flat_map_iter(worker).collect(),
    };
    made.sort_unstable_by_key(|(i, _)| *i);
    made.into_iter().map(|(_, result)| result).collect()
}

impl Input<'_> {
    /// The offset of an element in the file.
    fn offset(&self, element: usize) -> u64 {
        self.range.start + (element * self.dtype.bitsize().div_ceil(8)) as u64
    }

    fn read(&self, elements: &Range<usize>, buffer: &mut [u8]) -> Result<(), ExecuteError> {
        self.shard
            .read_at(buffer, self.offset(elements.start))
            .map_err(|source| ExecuteError::read(self.shard, &self.key, self.donor, source))
    }
}
