//! [`Plan`]: what will be done, as data. It can be read by everybody and made by planning alone.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Donor, Program, donor};
use crate::checkpoint::{Checkpoint, Key, Shard, TensorInfo};
use crate::diagnostic::Diagnostic;
use crate::surgery::{Method, OpName};

/// A validated plan. It owns its open files, base and donors, until it is executed.
#[derive(Debug)]
pub struct Plan {
    pub(super) base: Checkpoint,
    pub(super) donors: Vec<Donor>,
    pub(super) steps: Vec<Step>,
    pub(super) programs: Vec<Program>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) summary: Summary,
    pub(super) digest: Option<String>,
    /// Heads whose tie with the embedding is broken: positions in the base's index.
    pub(super) untied: Vec<usize>,
    /// The surgery file as it was named; `None` for the plan of no file.
    pub(super) file: Option<PathBuf>,
}

/// One operation, planned.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its place in the file, from 0.
    pub index: usize,
    /// `name:`.
    pub name: Option<String>,
    /// `scale`, `add`, …
    pub op: OpName,
    /// 1-based line.
    pub line: usize,
    /// Keys the pattern matched.
    pub matched: usize,
    /// Matched keys left alone.
    pub skipped: usize,
    /// Matched keys of a restored head, which no file has.
    pub restored: usize,
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
        /// `[start, end)`; shared by the edits of one operation.
        ranges: Arc<[Range<usize>]>,
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

impl Plan {
    /// The plan of no surgery at all: the same path as `operations: []`.
    #[must_use]
    pub fn identity(base: Checkpoint) -> Self {
        let diagnostics = base.weights.warnings.iter().map(donor::oddity).collect();
        Self {
            base,
            donors: Vec::new(),
            steps: Vec::new(),
            programs: Vec::new(),
            diagnostics,
            summary: Summary::default(),
            digest: None,
            untied: Vec::new(),
            file: None,
        }
    }

    /// The surgery file as it was named; `None` for the plan of no file.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The heads whose tie with the embedding is broken, as positions in the base's index: one for a dense head, three
    /// for an affine set, none when the tie is kept. Whoever writes a checkpoint writes them, edited or not.
    #[must_use]
    pub fn untied(&self) -> &[usize] {
        &self.untied
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
    ///
    /// # Panics
    /// If the tensor is not one of this plan's.
    #[must_use]
    pub fn donor_tensor(&self, tensor: &TensorRef) -> (&Shard, &TensorInfo, Range<u64>) {
        let weights = &self.donors[tensor.donor].weights;
        let info =
            weights.index.get(tensor.key.as_str()).expect("a plan refers to tensors that its donors have");
        let (shard, range) = weights.locate(info);
        (shard, info, range)
    }

    /// Where the bytes that a program begins with are (a head of a broken tie begins with the embedding's).
    ///
    /// # Panics
    /// If the program is not one of this plan's.
    #[must_use]
    pub fn base_tensor(&self, program: &Program) -> (&Shard, Range<u64>) {
        self.base.weights.locate(&self.base.weights.index.entries()[program.target].1)
    }
}
