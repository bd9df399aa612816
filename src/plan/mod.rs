//! What will be done: every tensor that will change and the exact program that changes it. No globs, no options, no
//! doubts: holding a [`Plan`] is the proof that its file is right.

pub(crate) mod cost;
mod donor;
pub mod explain;
mod fold;
pub mod json;
mod program;

pub use donor::Donor;
pub use program::Program;

use std::ops::Range;

use crate::checkpoint::{Checkpoint, Dtype, Key, Shard, TensorInfo};
use crate::diagnostic::Diagnostic;
pub use crate::surgery::Method;
use crate::surgery::SurgeryFile;

/// A validated plan. It owns its open files, base and donors, until it is executed.
#[derive(Debug)]
pub struct Plan {
    base: Checkpoint,
    donors: Vec<Donor>,
    steps: Vec<Step>,
    programs: Vec<Program>,
    diagnostics: Vec<Diagnostic>,
    summary: Summary,
    digest: Option<String>,
    /// The surgery file as it was named; `None` for the plan of no file.
    file: Option<std::path::PathBuf>,
}

/// One operation, planned.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its place in the file, from 0.
    pub index: usize,
    /// `name:`.
    pub name: Option<String>,
    /// `scale`, `add`, …
    pub op: &'static str,
    /// 1-based line.
    pub line: usize,
    /// Keys the pattern matched.
    pub matched: usize,
    /// Matched keys left alone.
    pub skipped: usize,
    /// One per tensor, in key order.
    pub edits: Vec<Edit>,
}

/// One tensor and what one operation does to it.
#[derive(Debug, Clone)]
pub struct Edit {
    /// Position in the base's index.
    pub target: usize,
    /// What.
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
        /// Which.
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
        /// How.
        method: Method,
    },
}

/// Which elements of a tensor, in its own units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Region {
    /// All.
    Whole,
    /// Sorted, disjoint, non-empty ranges of rows (axis 0) or columns (axis 1).
    Slices {
        /// 0 or 1.
        axis: usize,
        /// `[start, end)`.
        ranges: Vec<Range<usize>>,
    },
}

/// A tensor of a donor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorRef {
    /// Position in [`Plan::donors`].
    pub donor: usize,
    /// The key that is stored there (a missing head already resolved to the embedding).
    pub key: Key,
}

/// What the plan costs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations in the file.
    pub operations: usize,
    /// Stored tensors (and heads of broken ties) left to edit.
    pub tensors_edited: usize,
    /// Bytes read from the base's edited tensors.
    pub base_bytes: u64,
    /// Bytes read from donors.
    pub donor_bytes: u64,
    /// Bytes of the results.
    pub result_bytes: u64,
    /// At most so much memory beyond plain loading at a time.
    pub peak_extra_bytes: u64,
}

/// No plan: everything that is wrong (and what else was found), in file order.
#[derive(Debug)]
pub struct Refusal {
    /// At least one error among them.
    pub diagnostics: Vec<Diagnostic>,
}

/// Plans a surgery file against a checkpoint. Takes the checkpoint, because the plan owns its open files.
///
/// # Errors
/// Every mistake found in file, checkpoint and donors, in file order.
pub fn plan(file: &SurgeryFile, base: Checkpoint) -> Result<Plan, Refusal> {
    todo!()
}

impl Plan {
    /// The plan of no surgery at all: the same path as `operations: []`.
    #[must_use]
    pub fn identity(base: Checkpoint) -> Self {
        todo!()
    }

    /// The base checkpoint.
    #[must_use]
    pub fn base(&self) -> &Checkpoint {
        &self.base
    }

    /// Each distinct donor, opened once.
    #[must_use]
    pub fn donors(&self) -> &[Donor] {
        &self.donors
    }

    /// The operations in file order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// One program per edited tensor, in key order; no-effect and overwritten actions are gone.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// Warnings and advice, in file order.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// What it costs.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// `sha256:…`, or `None` when nothing is left to do.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Where a donor tensor's bytes are.
    #[must_use]
    pub fn donor_tensor(&self, tensor: &TensorRef) -> (&Shard, &TensorInfo, Range<u64>) {
        todo!()
    }

    /// Where the bytes that a program begins with are (a head of a broken tie begins with the embedding's).
    #[must_use]
    pub fn base_tensor(&self, program: &Program) -> (&Shard, Range<u64>) {
        todo!()
    }
}
