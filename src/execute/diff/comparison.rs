//! What a comparison says: serialised as it is, one [`Comparison`] a tensor.

use serde::{Serialize, Serializer};

use crate::checkpoint::{Dtype, Key};

/// The comparison of one tensor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// The tensor's name.
    #[serde(serialize_with = "as_text")]
    pub key: Key,
    /// Its shape on the first side; on the second if the first lacks it.
    pub shape: Vec<usize>,
    /// Its dtype on that side.
    pub dtype: String,
    /// Its size on that side, in bytes.
    pub bytes: u64,
    /// The shapes of the two sides, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shapes: Option<[Vec<usize>; 2]>,
    /// The dtypes of the two sides, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtypes: Option<[String; 2]>,
    /// The side that ties this tensor to another instead of storing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tie: Option<Tie>,
    /// The result.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A tie that only one side has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Tie {
    /// The side that has the tie.
    pub side: Which,
    /// The tensor that it is tied to on that side.
    #[serde(serialize_with = "as_text")]
    pub to: Key,
}

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Which {
    /// The left-hand side.
    First,
    /// The right-hand side.
    Second,
}

/// The result of comparing a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// All bits are equal.
    Equal,
    /// The same shape, but other values or another dtype.
    Differs(Figures),
    /// The shapes differ, or the dtypes differ and are not both floats.
    Incomparable,
    /// Only the first side has it.
    OnlyFirst,
    /// Only the second side has it.
    OnlySecond,
}

/// How far two tensors are apart. `max`, `relative` and `cosine` exist for dense floats (F16, BF16, F32) only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// Number of elements.
    pub elements: u64,
    /// Elements whose values differ; for other dtypes than floats, whose bytes differ.
    pub different: u64,
    /// The largest |second − first|.
    pub max: Option<f64>,
    /// ‖second − first‖ / ‖first‖.
    pub relative: Option<f64>,
    /// first · second / (‖first‖ ‖second‖).
    pub cosine: Option<f64>,
    /// Counts of NaNs and infinities, if there are any; the other figures of values may then be `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_finite: Option<NotFinite>,
}

/// Numbers of elements that are not finite, `[in the first, in the second]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct NotFinite {
    /// NaNs.
    pub nan: [u64; 2],
    /// Infinities.
    pub infinite: [u64; 2],
    /// Either of them, where the other side is finite.
    pub only: [u64; 2],
}

impl Comparison {
    /// Dtype and shape on each side of a tensor that both have.
    #[must_use]
    pub(crate) fn sides(&self) -> [(&str, &[usize]); 2] {
        [0, 1].map(|side| {
            let dtype = self.dtypes.as_ref().map_or(&self.dtype, |dtypes| &dtypes[side]);
            let shape = self.shapes.as_ref().map_or(&self.shape, |shapes| &shapes[side]);
            (dtype.as_str(), shape.as_slice())
        })
    }
}

impl Tie {
    /// The tie, if one side has it.
    pub(super) fn of(sides: [Option<&Key>; 2]) -> Option<Self> {
        let (side, to) = match sides {
            [Some(to), None] => (Which::First, to),
            [None, Some(to)] => (Which::Second, to),
            _ => return None,
        };
        Some(Self { side, to: to.clone() })
    }
}

fn as_text<S: Serializer>(key: &Key, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(key)
}

/// Whether values of this dtype can be compared.
pub(super) fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32)
}

/// Bytes of an element.
pub(super) fn width(dtype: Dtype) -> usize {
    dtype.bitsize().div_ceil(8)
}
