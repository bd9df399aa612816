//! [`Plan`]: what will be done, as data. Anything may read it; planning alone makes it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::action::TensorRef;
use super::donor::{self, Donor};
use super::ids::{DonorId, StepId};
use super::program::Program;
use super::step::Step;
use crate::checkpoint::{Checkpoint, Shard, TensorId, TensorInfo};
use crate::diagnostic::Diagnostic;

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
    /// Heads whose tie with the embedding is broken.
    pub(super) untied: Vec<TensorId>,
    /// The surgery file's path as it was given; `None` for the plan of no file.
    pub(super) file: Option<PathBuf>,
}

/// What executing a plan costs.
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
    /// Peak memory beyond plain loading, in bytes.
    pub peak_extra_bytes: u64,
}

impl Plan {
    /// The plan that edits nothing: the same path as `operations: []`.
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

    /// The surgery file's path as it was given; `None` for the plan of no file.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The heads whose tie with the embedding is broken: one for a dense head, three
    /// for an affine set, none when the tie is kept. An export writes them, edited or not.
    #[doc(hidden)]
    #[must_use]
    pub fn untied(&self) -> &[TensorId] {
        &self.untied
    }

    /// The base checkpoint.
    #[must_use]
    pub fn base(&self) -> &Checkpoint {
        &self.base
    }

    /// Each distinct donor, opened once.
    #[doc(hidden)]
    #[must_use]
    pub fn donors(&self) -> &[Donor] {
        &self.donors
    }

    /// One of this plan's donors.
    ///
    /// # Panics
    /// If the donor is not one of this plan's.
    #[must_use]
    pub fn donor(&self, id: DonorId) -> &Donor {
        &self.donors[id.position()]
    }

    /// One of this plan's steps.
    ///
    /// # Panics
    /// If the step is not one of this plan's.
    #[must_use]
    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.position()]
    }

    /// The operations in file order.
    #[doc(hidden)]
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// One program per edited tensor, in key order; no-effect and overwritten actions are gone.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// Warnings and notes, in file order.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// What executing it costs.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// `sha256:…`; `None` if the plan edits nothing.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Where a donor tensor's bytes are.
    ///
    /// # Panics
    /// If the tensor is not one of this plan's.
    #[doc(hidden)]
    #[must_use]
    pub fn donor_tensor(&self, tensor: &TensorRef) -> (&Shard, &TensorInfo, Range<u64>) {
        let weights = &self.donor(tensor.donor).weights;
        let info =
            weights.index.get(tensor.key.as_str()).expect("a plan refers to tensors that its donors have");
        let (shard, range) = weights.locate(info);
        (shard, info, range)
    }

    /// Where the bytes that a program begins with are (a head of a broken tie begins with the embedding's).
    ///
    /// # Panics
    /// If the program is not one of this plan's.
    #[doc(hidden)]
    #[must_use]
    pub fn base_tensor(&self, program: &Program) -> (&Shard, Range<u64>) {
        self.base.weights.locate(&self.base.weights.index[program.target()].1)
    }
}
