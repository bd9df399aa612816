//! [`Recipe`]: a program with everything settled that is the same for all its tiles. Pure arithmetic: it knows inputs
//! by number and nothing of files.

use crate::checkpoint::Dtype;
use crate::plan::Region;

/// How to make one tensor.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    /// Of base and result.
    pub(super) dtype: Dtype,
    /// Of base and result.
    pub(super) shape: Vec<usize>,
    /// What the values are before the first step.
    pub(super) start: Start,
    /// What happens to them, in order.
    pub(super) steps: Vec<Step>,
    /// The dtypes of the tensors that `start` and `steps` refer to by position.
    pub(super) inputs: Vec<Dtype>,
    /// Whether it makes the scales of an affine set, its biases, or neither.
    pub(super) member: Member,
}

/// What the values are before the first step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Start {
    /// What the result's buffer holds when a tile begins: bits that are copied or zeroed, but not computed with.
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

/// What a tensor is to an affine set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    Scales,
    Biases,
    None,
}

impl Recipe {
    /// Whether values are computed. If not, bits are copied or zeroed, whatever the dtype.
    pub(super) fn computes(&self) -> bool {
        matches!(self.start, Start::From(_) | Start::Mix { .. }) || self.a_step_computes()
    }

    /// Whether values are computed after the start.
    pub(super) fn a_step_computes(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step, Step::Zero(_)))
    }

    /// Bytes an element.
    pub(super) fn width(&self) -> usize {
        self.dtype.bitsize().div_ceil(8)
    }

    /// Elements of the tensor.
    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}
