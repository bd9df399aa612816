//! Compares checkpoints: which tensors differ, and by how much. Streams both, so that neither has to fit in memory.

mod comparison;
mod sums;

pub(crate) use comparison::{Comparison, Figures, NotFinite, Tie, Verdict, Which};

use std::collections::BTreeSet;
use std::ops::Range;

use super::{ExecuteError, Executor};
use crate::checkpoint::{Key, Origin, Shard, TensorId, TensorInfo, Weights};
use crate::plan::Plan;
use crate::plan::cost::TILE;
use comparison::{is_float, width};
use sums::{Sums, sums_of};

/// Elements of each side that are in memory at a time; compared tile by tile.
const WINDOW: usize = 64 * TILE;

/// Compares two checkpoints, tensor by tensor in key order.
///
/// # Errors
/// A file that changed or cannot be read.
pub(crate) fn diff(
    first: &Weights,
    second: &Weights,
    mut each: impl FnMut(Comparison),
) -> Result<(), ExecuteError> {
    let keys: BTreeSet<&Key> =
        [first, second].iter().flat_map(|w| w.index.entries()).map(|(key, _)| key).collect();
    for key in keys {
        let [a, b] = [first, second].map(|w| w.index.get(key.as_str()).map(|info| Side::new(w, key, info)));
        let tied = [&a, &b].map(|side| side.as_ref().and_then(Side::tied_to));
        let (side, verdict, tie) = match ((&a, &b), tied) {
            // A head that is not stored is the embedding, which is compared under its own name.
            ((Some(_), Some(_)), [Some(_), Some(_)])
            | ((Some(_), None), [Some(_), _])
            | ((None, Some(_)), [_, Some(_)])
            | ((None, None), _) => continue,
            ((Some(a), Some(b)), tied) => (a, compare(a, b)?, Tie::of(tied)),
            ((Some(a), None), _) => (a, Verdict::OnlyFirst, None),
            ((None, Some(b)), _) => (b, Verdict::OnlySecond, None),
        };
        let both = a.as_ref().zip(b.as_ref()).map(|(a, b)| [a, b]);
        let dtypes = both.filter(|[a, b]| a.info.dtype != b.info.dtype);
        let shapes = both.filter(|[a, b]| a.info.shape != b.info.shape);
        each(Comparison {
            dtypes: dtypes.map(|sides| sides.map(|side| side.info.dtype.to_string())),
            shapes: shapes.map(|sides| sides.map(|side| side.info.shape.clone())),
            tie,
            verdict,
            ..side.equal()
        });
    }
    Ok(())
}

/// Compares a plan's base with the plan's result, tensor by tensor in key order.
///
/// # Errors
/// Those of executing the plan.
pub(crate) fn diff_plan(plan: &Plan, mut each: impl FnMut(Comparison)) -> Result<(), ExecuteError> {
    let base = &plan.base().weights;
    let mut executor = Executor::without_report(plan)?;
    let mut programs = plan.programs().iter().peekable();
    for (position, (key, info)) in base.index.entries().iter().enumerate() {
        let side = Side::new(base, key, info);
        let mut verdict = Verdict::Equal;
        if let Some(program) = programs.next_if(|program| program.target() == TensorId::new(position)) {
            let mut sums = Sums::default();
            let (mut at, mut old) = (0, Vec::new());
            executor.stream::<ExecuteError>(program, &mut |new| {
                old.resize(new.len(), 0);
                side.read(at, &mut old)?;
                sums.add(&sums_of((info.dtype, &old), (info.dtype, new)));
                at += new.len() as u64;
                Ok(())
            })?;
            verdict = sums.verdict(info);
        } else if matches!(info.origin, Origin::Tied(_)) && !plan.untied().contains(&TensorId::new(position))
        {
            // A tied head is the embedding, before and after.
            continue;
        }
        each(Comparison { tie: Tie::of([side.tied_to(), None]), verdict, ..side.equal() });
    }
    executor.finish().map(drop)
}

/// A tensor in a checkpoint.
struct Side<'w> {
    key: &'w Key,
    info: &'w TensorInfo,
    shard: &'w Shard,
    range: Range<u64>,
}

impl<'w> Side<'w> {
    fn new(weights: &'w Weights, key: &'w Key, info: &'w TensorInfo) -> Self {
        let (shard, range) = weights.locate(info);
        Self { key, info, shard, range }
    }

    fn tied_to(&self) -> Option<&'w Key> {
        match &self.info.origin {
            Origin::Tied(key) => Some(key),
            Origin::Stored { .. } => None,
        }
    }

    /// The comparison with itself.
    fn equal(&self) -> Comparison {
        Comparison {
            key: self.key.clone(),
            shape: self.info.shape.clone(),
            dtype: self.info.dtype.to_string(),
            bytes: self.range.end - self.range.start,
            shapes: None,
            dtypes: None,
            tie: None,
            verdict: Verdict::Equal,
        }
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<(), ExecuteError> {
        let offset = self.range.start + at;
        self.shard
            .read_at(buffer, offset)
            .map_err(|source| ExecuteError::read(self.shard, self.key, false, source))
    }
}

fn compare(a: &Side<'_>, b: &Side<'_>) -> Result<Verdict, ExecuteError> {
    let values = is_float(a.info.dtype) && is_float(b.info.dtype);
    if a.info.shape != b.info.shape || a.info.dtype != b.info.dtype && !values {
        return Ok(Verdict::Incomparable);
    }
    let elements: usize = a.info.shape.iter().product();
    let (a_width, b_width) = (width(a.info.dtype), width(b.info.dtype));
    let (mut a_bytes, mut b_bytes) = (Vec::new(), Vec::new());
    // A tensor without elements still has a dtype.
    let mut sums = Sums::new(a.info.dtype != b.info.dtype);
    for first in (0..elements).step_by(WINDOW) {
        let n = WINDOW.min(elements - first);
        a_bytes.resize(n * a_width, 0);
        b_bytes.resize(n * b_width, 0);
        a.read((first * a_width) as u64, &mut a_bytes)?;
        b.read((first * b_width) as u64, &mut b_bytes)?;
        sums.add(&sums_of((a.info.dtype, &a_bytes), (b.info.dtype, &b_bytes)));
    }
    Ok(sums.verdict(a.info))
}
