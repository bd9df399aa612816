//! Comparing checkpoints: which tensors differ, and by how much. Streamed, so that neither has to fit in memory.

mod sums;

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Serialize, Serializer};

use super::{ExecuteError, Executor};
use crate::checkpoint::{Dtype, Key, Origin, Shard, TensorId, TensorInfo, Weights};
use crate::plan::Plan;
use crate::plan::cost::TILE;
use sums::{Sums, sums_of};

/// Bytes of each side that are compared at a time, a tile after the other.
const WINDOW: usize = 64 * TILE;

/// A tensor of either side, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Its name.
    #[serde(serialize_with = "as_text")]
    pub key: Key,
    /// Of the first side, else of the second.
    pub shape: Vec<usize>,
    /// Its dtype on that side.
    pub dtype: String,
    /// Bytes on that side.
    pub bytes: u64,
    /// The shapes of the two sides, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shapes: Option<[Vec<usize>; 2]>,
    /// The dtypes of the two sides, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtypes: Option<[String; 2]>,
    /// The side that stores no such tensor, because it is tied to another there, and is compared as that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tie: Option<Tie>,
    /// What came out.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A tie that one side has and the other has not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tie {
    /// Which side.
    pub side: Which,
    /// The tensor that it is tied to there.
    #[serde(serialize_with = "as_text")]
    pub to: Key,
}

/// One of two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// What is compared.
    First,
    /// What it is compared with.
    Second,
}

/// What comparing a tensor came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Not a bit differs.
    Equal,
    /// The same shape, other values (or the same in another dtype).
    Differs(Figures),
    /// Another shape, or a dtype whose values cannot be compared.
    Incomparable,
    /// The second side has no such tensor.
    OnlyFirst,
    /// The first side has no such tensor.
    OnlySecond,
}

/// How far two tensors are apart. Figures over values are there for dense floats (F16, BF16, F32) alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Elements.
    pub elements: u64,
    /// Elements whose values differ (of other dtypes: whose bytes do).
    pub different: u64,
    /// The largest |second − first|.
    pub max: Option<f64>,
    /// ‖second − first‖ / ‖first‖.
    pub relative: Option<f64>,
    /// first · second / (‖first‖ ‖second‖).
    pub cosine: Option<f64>,
    /// What is NaN or infinite, if anything is: the other figures of values are then `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_finite: Option<NotFinite>,
}

/// How many elements are NaN or infinite, `[in the first, in the second]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct NotFinite {
    /// NaN.
    pub nan: [u64; 2],
    /// Infinite.
    pub infinite: [u64; 2],
    /// Either of the two, and finite on the other side.
    pub only: [u64; 2],
}

/// Compares two checkpoints, tensor by tensor in key order.
///
/// # Errors
/// A file that changed or cannot be read.
pub fn diff(first: &Weights, second: &Weights, mut each: impl FnMut(Comparison)) -> Result<(), ExecuteError> {
    let keys: BTreeSet<&Key> =
        [first, second].iter().flat_map(|w| w.index.entries()).map(|(key, _)| key).collect();
    for key in keys {
        let [a, b] = [first, second].map(|w| w.index.get(key.as_str()).map(|info| Side::new(w, key, info)));
        let tied = [&a, &b].map(|side| side.as_ref().and_then(Side::tied_to));
        let (side, verdict, tie) = match ((&a, &b), tied) {
            // A head that neither side stores is its embedding, which is compared already.
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

/// Compares a plan's base with what the plan makes of it, tensor by tensor in key order.
///
/// # Errors
/// What executing the plan comes to.
pub fn diff_plan(plan: &Plan, mut each: impl FnMut(Comparison)) -> Result<(), ExecuteError> {
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
            // It is the embedding, before and after.
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

    /// Compared with itself.
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

impl Comparison {
    /// Dtype and shape of each side, for a tensor that both have.
    #[must_use]
    pub fn sides(&self) -> [(&str, &[usize]); 2] {
        [0, 1].map(|side| {
            let dtype = self.dtypes.as_ref().map_or(&self.dtype, |dtypes| &dtypes[side]);
            let shape = self.shapes.as_ref().map_or(&self.shape, |shapes| &shapes[side]);
            (dtype.as_str(), shape.as_slice())
        })
    }
}

impl Tie {
    /// The tie, if one side has it.
    fn of(sides: [Option<&Key>; 2]) -> Option<Self> {
        let (side, to) = match sides {
            [Some(to), None] => (Which::First, to),
            [None, Some(to)] => (Which::Second, to),
            _ => return None,
        };
        Some(Self { side, to: to.clone() })
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
    // Where there is no element, there is still a dtype.
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

fn as_text<S: Serializer>(key: &Key, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(key)
}

fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32)
}

fn width(dtype: Dtype) -> usize {
    dtype.bitsize().div_ceil(8)
}
