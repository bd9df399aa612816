//! [`Action`]: what the executor can do to a tensor.
//!
//! Everything that is known of an action is said here: what it reads, whether it overwrites, has an effect or computes,
//! how it is named, written and shown. Cost, digest, programs, lints, JSON and text ask it and match no variants; the
//! executor alone does, where it carries an action out.

use std::ops::Range;
use std::sync::Arc;

use super::ids::DonorId;
use super::working_precision::working;
use crate::checkpoint::{Dtype, Key, TensorId};
use crate::diagnostic::Look;
use crate::diagnostic::words::plural;
use crate::surgery::Method;

/// One tensor and what one operation does to it.
#[derive(Debug, Clone)]
pub struct Edit {
    /// The tensor of the base.
    pub target: TensorId,
    /// What is done to it.
    pub action: Action,
}

/// What the executor can do. Quantization ends above this line: a scaled affine set is two `Scale`s.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// x · factor.
    Scale {
        /// Finite in working precision.
        factor: f64,
    },
    /// base + (alpha · donor).
    Add {
        /// Equal shape, dense float.
        donor: TensorRef,
        /// Finite in working precision.
        alpha: f64,
    },
    /// Zero a region.
    Zero {
        /// The elements that become 0.
        region: Region,
    },
    /// The donor's bits.
    Replace {
        /// Equal shape and dtype.
        donor: TensorRef,
    },
    /// blend(a, b), whatever the base holds.
    Blend {
        /// First donor tensor.
        a: TensorRef,
        /// Second donor tensor.
        b: TensorRef,
        /// b's weight, 0 to 1.
        ratio: f64,
        /// Linear or spherical.
        method: Method,
    },
}

/// The elements of a tensor that an action is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Region {
    /// All.
    Whole,
    /// Sorted, disjoint, non-empty ranges of rows (axis 0) or columns (axis 1).
    Slices {
        /// 0 or 1.
        axis: usize,
        /// `[start, end)`; shared by the edits of one operation.
        ranges: Arc<[Range<usize>]>,
    },
}

/// A tensor of a donor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorRef {
    /// The donor.
    pub donor: DonorId,
    /// The key that is stored there (a missing head already resolved to the embedding).
    pub key: Key,
}

/// A parameter of an action, for those that write actions down.
#[derive(Debug, Clone, Copy)]
pub(super) enum Parameter<'a> {
    Number(f64),
    Donor(&'a TensorRef),
    Method(Method),
    Region(&'a Region),
}

/// What an action does to a tensor taken as a weighted sum of the base and whole models.
#[derive(Debug, Clone, Copy)]
pub(super) enum Share<'a> {
    /// Every weight is multiplied.
    Multiplied(f64),
    /// A donor comes in with this weight.
    Added(&'a TensorRef, f64),
    /// Nothing is left of the sum.
    Cleared,
    /// The donors' own values take the place of the base's.
    Replaced,
    /// The weights stay.
    Kept,
}

impl Action {
    /// Its name in JSON and in the digest.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Scale { .. } => "scale",
            Self::Add { .. } => "add",
            Self::Zero { .. } => "zero",
            Self::Replace { .. } => "replace",
            Self::Blend { .. } => "blend",
        }
    }

    /// Its parameters, named, in the order in which JSON shows them.
    pub(super) fn parameters(&self) -> Vec<(&'static str, Parameter<'_>)> {
        match self {
            Self::Scale { factor } => vec![("factor", Parameter::Number(*factor))],
            Self::Add { donor, alpha } => {
                vec![("alpha", Parameter::Number(*alpha)), ("donor", Parameter::Donor(donor))]
            }
            Self::Zero { region } => vec![("region", Parameter::Region(region))],
            Self::Replace { donor } => vec![("donor", Parameter::Donor(donor))],
            Self::Blend { a, b, ratio, method } => vec![
                ("ratio", Parameter::Number(*ratio)),
                ("method", Parameter::Method(*method)),
                ("a", Parameter::Donor(a)),
                ("b", Parameter::Donor(b)),
            ],
        }
    }

    /// The donor tensors that it names.
    pub(super) fn donors(&self) -> impl Iterator<Item = &TensorRef> {
        let (first, second) = match self {
            Self::Scale { .. } | Self::Zero { .. } => (None, None),
            Self::Add { donor, .. } | Self::Replace { donor } => (Some(donor), None),
            Self::Blend { a, b, .. } => (Some(a), Some(b)),
        };
        first.into_iter().chain(second)
    }

    /// The donor tensors that it reads: at ratio 0 or 1 a blend reads one.
    pub(crate) fn reads(&self) -> impl Iterator<Item = &TensorRef> {
        let (skip, take) = match self {
            Self::Blend { ratio, .. } if *ratio <= 0.0 => (0, 1),
            Self::Blend { ratio, .. } if *ratio >= 1.0 => (1, 1),
            Self::Blend { .. }
            | Self::Scale { .. }
            | Self::Add { .. }
            | Self::Zero { .. }
            | Self::Replace { .. } => (0, 2),
        };
        self.donors().skip(skip).take(take)
    }

    /// How often it reads them: spherical weights need a pass of their own before the blend.
    pub(super) fn passes(&self) -> u64 {
        match self {
            Self::Blend { method: Method::Slerp, .. } if self.reads().count() == 2 => 2,
            Self::Blend { .. }
            | Self::Scale { .. }
            | Self::Add { .. }
            | Self::Zero { .. }
            | Self::Replace { .. } => 1,
        }
    }

    /// Whether nothing of what was there before remains.
    pub(super) fn overwrites(&self) -> bool {
        match self {
            Self::Replace { .. } | Self::Blend { .. } | Self::Zero { region: Region::Whole } => true,
            Self::Scale { .. } | Self::Add { .. } | Self::Zero { region: Region::Slices { .. } } => false,
        }
    }

    /// Whether it can change a bit of a tensor: not a factor of 1 or an alpha of 0, as the working precision has them.
    pub(super) fn has_effect(&self, dtype: Dtype) -> bool {
        match self {
            Self::Scale { factor } => working(dtype, *factor) != Some(1.0),
            Self::Add { alpha, .. } => working(dtype, *alpha) != Some(0.0),
            Self::Zero { .. } | Self::Replace { .. } | Self::Blend { .. } => true,
        }
    }

    /// Whether it computes values of a tensor of this dtype. If not, it copies or zeroes bits.
    pub(super) fn computes(&self, dtype: Dtype, donor_dtype: impl Fn(&TensorRef) -> Dtype) -> bool {
        match self {
            Self::Scale { .. } | Self::Add { .. } => true,
            Self::Zero { .. } => false,
            Self::Replace { .. } | Self::Blend { .. } => {
                let mut donors = self.reads();
                donors.next().is_some_and(|donor| donor_dtype(donor) != dtype) || donors.next().is_some()
            }
        }
    }

    /// The part of the tensor that it acts on.
    pub(super) fn region(&self) -> &Region {
        match self {
            Self::Zero { region } => region,
            Self::Scale { .. } | Self::Add { .. } | Self::Replace { .. } | Self::Blend { .. } => {
                &Region::Whole
            }
        }
    }

    /// What it does to a weighted sum of whole models.
    pub(super) fn share(&self) -> Share<'_> {
        match self {
            Self::Scale { factor } => Share::Multiplied(*factor),
            Self::Add { donor, alpha } => Share::Added(donor, *alpha),
            Self::Zero { region: Region::Whole } => Share::Cleared,
            Self::Zero { region: Region::Slices { .. } } => Share::Kept,
            Self::Replace { .. } | Self::Blend { .. } => Share::Replaced,
        }
    }

    /// It in a few words; `donor` names a donor's tensor.
    pub(super) fn text(&self, look: Look, donor: impl Fn(&TensorRef) -> String) -> String {
        let times = look.either("×", "x");
        match self {
            Self::Scale { factor } => format!("{times} {factor}"),
            Self::Add { donor: from, alpha } => format!("+ {alpha} {times} {}", donor(from)),
            Self::Zero { region: Region::Whole } => "zero".to_owned(),
            Self::Zero { region: region @ Region::Slices { .. } } => format!("zero {}", region.text(look)),
            Self::Replace { donor: from } => format!("replaced by {}", donor(from)),
            Self::Blend { a, b, ratio, method: _ } => {
                format!("{} {} {} at {ratio}", donor(a), look.either("→", "->"), donor(b))
            }
        }
    }
}

impl Region {
    /// `rows 0–127, 256–383`, or nothing for a whole tensor.
    pub(super) fn text(&self, look: Look) -> String {
        let Self::Slices { axis, ranges } = self else { return String::new() };
        let numbers = ranges.iter().map(|range| match range.end - range.start {
            1 => range.start.to_string(),
            _ => format!("{}{}{}", range.start, look.either("–", "-"), range.end - 1),
        });
        let axis =
            plural(ranges.iter().map(Range::len).sum::<usize>(), if *axis == 0 { "row" } else { "column" });
        format!("{axis} {}", numbers.collect::<Vec<_>>().join(", "))
    }
}
