//! [`Recipe`]: a program with everything resolved that is the same for all its tiles. Pure arithmetic: inputs are numbers,
//! and there are no files.

use crate::checkpoint::Dtype;
pub(super) use crate::plan::Member;
use crate::plan::Region;

/// How to compute one tensor.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    /// The dtype of base and result.
    pub(super) dtype: Dtype,
    /// The shape of base and result.
    pub(super) shape: Vec<usize>,
    /// The values before the first step.
    pub(super) start: Start,
    /// The steps that change them, in order.
    pub(super) steps: Vec<Step>,
    /// The dtypes of the tensors that `start` and `steps` refer to by position.
    pub(super) inputs: Vec<Dtype>,
    /// What the tensor is to an affine set, whose scales and biases are counted apart.
    pub(super) member: Member,
}

/// The values before the first step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Start {
    /// The contents of the result's buffer when a tile begins: bits that are copied or zeroed, but not computed with.
    InPlace,
    /// +0.
    Zeros,
    /// An input, of any float dtype.
    From(usize),
    /// Two donors, each with its weight.
    Mix { a: usize, b: usize, weights: (f64, f64) },
}

/// One step, as [`Action`](crate::plan::Action) has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// x · factor.
    Scale(f64),
    /// x + (alpha · input).
    Add { input: usize, alpha: f64 },
    /// +0 there.
    Zero(Region),
}

impl Recipe {
    /// Whether values are computed. If not, bits are copied or zeroed, whatever the dtype.
    pub(super) fn computes(&self) -> bool {
        matches!(self.start, Start::From(_) | Start::Mix { .. }) || self.a_step_computes()
    }

    /// Whether values are computed after the start.
    pub(super) fn a_step_computes(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Scale(_) | Step::Add { .. } => true,
            Step::Zero(_) => false,
        })
    }

    /// Bytes per element.
    pub(super) fn width(&self) -> usize {
        self.dtype.bitsize().div_ceil(8)
    }

    /// Elements of the tensor.
    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}
