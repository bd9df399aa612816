//! [`Job`]: a program with its files. Reads tiles by position, straight into the result or into buffers that are used
//! again, and runs the recipe over them with rayon.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::ExecuteError;
use super::blend::{self, BLOCK, BlockSums, Sums};
use super::buffers::{Buffers, Pool, ROOM_TO_SHIFT, shift};
use super::kernel::{Outcome, Tile, edit};
use super::recipe::{Member, Recipe, Start, Step};
use crate::checkpoint::{Dtype, Key, Shard};
use crate::plan::cost::{self, IN_FLIGHT, TILE};
use crate::plan::{Action, Method, Plan, Program, TensorRef};

/// Pieces that a stretch is divided into at most: many more than there are processors, which are not equally fast.
const PIECES: usize = 256;

/// How a stretch of a result is to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    /// With figures.
    pub(super) count: bool,
    /// For somebody who does not read it soon.
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
pub(super) struct Job<'p> {
    pub(super) recipe: Recipe,
    /// What the result begins as, if the recipe starts in place.
    begin: Option<Input<'p>>,
    inputs: Vec<Input<'p>>,
    /// The step of the plan that the start belongs to, if the start is an action.
    pub(super) start_of: Option<usize>,
    /// The step of the plan that each step of the recipe belongs to.
    pub(super) step_of: Vec<usize>,
    /// Whether a SLERP had to be a LERP.
    pub(super) fell_back: bool,
    /// Bytes read of the base and of donors, all passes together.
    pub(super) base_bytes: u64,
    pub(super) donor_bytes: u64,
}

impl<'p> Job<'p> {
    /// Settles what is the same for all tiles; for a SLERP that takes a pass over both donors.
    pub(super) fn new(plan: &'p Plan, program: &Program, pool: &Pool) -> Result<Self, ExecuteError> {
        let mut actions = cost::live(program).iter();
        let mut job = Self {
            recipe: Recipe {
                dtype: program.dtype,
                shape: program.shape.clone(),
                start: Start::InPlace,
                steps: Vec::new(),
                inputs: Vec::new(),
                member: match program.key.as_str().rsplit('.').next() {
                    Some("scales") => Member::Scales,
                    Some("biases") => Member::Biases,
                    _ => Member::None,
                },
            },
            begin: None,
            inputs: Vec::new(),
            start_of: None,
            step_of: Vec::new(),
            fell_back: false,
            base_bytes: 0,
            donor_bytes: 0,
        };
        if cost::reads_base(program) {
            let (shard, range) = plan.base_tensor(program);
            let key = program.key.clone();
            job.base_bytes = range.end - range.start;
            job.begin = Some(Input { shard, key, donor: false, dtype: program.dtype, range });
        } else if let Some((step, action)) = actions.next() {
            job.start_of = Some(*step);
            job.begin_anew(plan, action, pool)?;
        }
        for (step, action) in actions {
            let action = match action {
                Action::Scale { factor } => Step::Scale(*factor),
                Action::Add { donor, alpha } => Step::Add { input: job.input(plan, donor), alpha: *alpha },
                Action::Zero { region } => Step::Zero(region.clone()),
                Action::Replace { .. } | Action::Blend { .. } => unreachable!("it would be the start"),
            };
            job.recipe.steps.push(action);
            job.step_of.push(*step);
        }
        if job.recipe.computes()
            && let Some(begin) = job.begin.take()
        {
            // What is computed with is read into small buffers, and each result is written once.
            job.recipe.start = Start::From(job.inputs.len());
            job.recipe.inputs.push(begin.dtype);
            job.inputs.push(begin);
        }
        Ok(job)
    }

    /// Takes an action that overwrites the whole tensor as the start.
    fn begin_anew(&mut self, plan: &'p Plan, action: &Action, pool: &Pool) -> Result<(), ExecuteError> {
        let mut donors = cost::reads(action);
        self.recipe.start = match (donors.next(), donors.next(), action) {
            (Some(a), Some(b), Action::Blend { ratio, method, .. }) => {
                let (a, b) = (self.input(plan, a), self.input(plan, b));
                let weights = match method {
                    Method::Lerp => None,
                    Method::Slerp => {
                        self.donor_bytes *= 2;
                        let weights = blend::slerp(&self.sums(pool)?, *ratio);
                        self.fell_back = weights.is_none();
                        weights
                    }
                };
                Start::Mix { a, b, weights: weights.unwrap_or_else(|| blend::lerp(*ratio)) }
            }
            (Some(donor), ..) => {
                let input = self.open(plan, donor);
                if input.dtype == self.recipe.dtype {
                    self.begin = Some(input);
                    Start::InPlace
                } else {
                    self.recipe.inputs.push(input.dtype);
                    self.inputs.push(input);
                    Start::From(0)
                }
            }
            _ => Start::Zeros,
        };
        Ok(())
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

    /// What an angle between the two inputs follows from.
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

    /// Where the stretch that begins at element `first` should be made in a buffer with [`ROOM_TO_SHIFT`].
    pub(super) fn shift(&self, first: usize, buffer: &[u8]) -> usize {
        self.begin.as_ref().map_or(0, |begin| shift(buffer.as_ptr(), begin.offset(first)))
    }

    /// Makes the stretch of the result that begins at element `first`, a multiple of the tile.
    pub(super) fn fill(
        &self,
        first: usize,
        out: &mut [u8],
        pool: &Pool,
        wish: Wish,
    ) -> Result<Outcome, ExecuteError> {
        let tile = TILE * self.recipe.width();
        let tiles = out.len().div_ceil(tile).div_ceil(PIECES).max(1);
        let pieces = out.chunks_mut(tiles * tile).enumerate();
        let outcomes = in_order(pieces, pool, |(piece, out), buffers| {
            let first = first + piece * tiles * TILE;
            let mut outcome = Outcome::new(self.recipe.steps.len());
            for (i, out) in out.chunks_mut(tile).enumerate() {
                outcome.add(&self.tile(first + i * TILE, out, buffers, wish)?);
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
        Wish { count, past_caches }: Wish,
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

/// Works on pieces with all threads, each taking the next when it has done one, on at most [`IN_FLIGHT`] at a time, and
/// gives the results in the order of the pieces. After an error no more pieces are begun; of several the first is told.
/// A single piece is done at once: other threads would have to wake up for it.
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
    /// Where an element is in the file.
    fn offset(&self, element: usize) -> u64 {
        self.range.start + (element * self.dtype.bitsize().div_ceil(8)) as u64
    }

    fn read(&self, elements: &Range<usize>, buffer: &mut [u8]) -> Result<(), ExecuteError> {
        self.shard
            .read_at(buffer, self.offset(elements.start))
            .map_err(|source| ExecuteError::read(self.shard, &self.key, self.donor, source))
    }
}
