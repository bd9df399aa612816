//! Linear modules: rows, columns, and how a slice of them is zeroed.

use std::sync::Arc;

use super::reached::Module;
use crate::checkpoint::{AffineSet, TensorId};
use crate::diagnostic::Code;
use crate::diagnostic::words::count;
use crate::plan::action::{Action, Region};
use crate::plan::planned_operation::{Context, PlannedOperation, incomplete};
use crate::plan::scope::Fact;
use crate::plan::working_precision::Class;

/// A linear module of the base.
#[derive(Debug)]
pub(super) struct Linear {
    /// Its weight.
    pub weight: Weight,
    /// `P.bias`, where there is one.
    pub bias: Option<TensorId>,
    /// Output features.
    pub rows: usize,
    /// Columns of the stored tensor that is zeroed: input features, or groups of a set.
    pub stored_columns: usize,
}

/// How a weight is stored.
#[derive(Debug)]
pub(super) enum Weight {
    /// One tensor.
    Dense(TensorId),
    /// An affine set.
    Set(Arc<AffineSet>),
}

/// Why a module cannot be pruned.
#[derive(Debug)]
pub(super) struct Obstacle {
    pub code: Code,
    pub reason: String,
    pub help: String,
}

impl Obstacle {
    /// An obstacle with a code of its own.
    pub(super) fn new(code: Code, reason: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), help: help.into() }
    }

    /// A layout that is not supported.
    pub(super) fn layout(reason: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(Code::UnsupportedLayout, reason, help)
    }
}

/// The linear module of that name, if there is one.
///
/// # Errors
/// Why its rows and columns are not plain.
pub(super) fn find(
    context: &Context<'_>,
    module: &Module<'_>,
    leaf: &str,
) -> Result<Option<Linear>, Obstacle> {
    let Some(position) = module.position(context, leaf, "weight") else { return Ok(None) };
    let bias = module.position(context, leaf, "bias");
    let info = context.entry(position).1;
    let dense = "use a checkpoint that is dense or has affine quantization";
    let (weight, stored) = match context.facts.of(position) {
        Fact::Plain(Class::Float) => (Weight::Dense(position), position),
        Fact::Member(set) => {
            let scales = set.scales;
            (Weight::Set(set), scales)
        }
        Fact::Plain(_) => {
            let reason = format!("{} weights cannot be edited", info.dtype);
            return Err(Obstacle::new(Code::UnsupportedQuantization, reason, dense));
        }
        Fact::Incomplete(reason) => {
            let help = "repair the checkpoint: a quantized module needs `.weight`, `.scales` and `.biases`";
            return Err(Obstacle::new(
                Code::IncompleteAffineSet,
                incomplete(&format!("{}.{leaf}", module.parent), &reason),
                help,
            ));
        }
        Fact::Foreign(name) => {
            let reason = format!("tensors quantized as {name} cannot be edited");
            return Err(Obstacle::new(Code::UnsupportedQuantization, reason, dense));
        }
    };
    match context.entry(stored).1.shape[..] {
        [rows, _] if bias.is_some_and(|bias| context.entry(bias).1.shape != [rows]) => {
            let reason = "the bias does not have one element per row of the weight";
            Err(Obstacle::layout(reason, "repair the checkpoint, or prune whole layers instead"))
        }
        [rows, stored_columns] => Ok(Some(Linear { weight, bias, rows, stored_columns })),
        ref shape => Err(not_a_matrix(shape.len())),
    }
}

/// Why a weight that is no matrix cannot be pruned.
pub(super) fn not_a_matrix(dimensions: usize) -> Obstacle {
    if dimensions == 3 {
        let reason = "experts stacked in one tensor cannot be pruned by channel or head";
        return Obstacle::layout(
            reason,
            "use a checkpoint with separate tensors per expert, or prune whole layers",
        );
    }
    let reason = format!("a weight of {} has no rows and columns", count(dimensions, "dimension"));
    Obstacle::layout(reason, "prune whole layers instead")
}

impl Linear {
    /// Whether its weight is an affine set.
    pub(super) fn set(&self) -> Option<&AffineSet> {
        match &self.weight {
            Weight::Set(set) => Some(set),
            Weight::Dense(_) => None,
        }
    }

    /// Zeroes a region in units of the stored tensor: the weight, or a set's scales and biases.
    pub(super) fn zero(&self, region: &Region, planned: &mut PlannedOperation) {
        let zero = || Action::Zero { region: region.clone() };
        match &self.weight {
            Weight::Dense(position) => planned.edit(*position, zero()),
            Weight::Set(set) => {
                planned.edit(set.scales, zero());
                planned.edit(set.biases, zero());
            }
        }
    }

    /// The positions of its weight.
    pub(super) fn positions(&self) -> Vec<TensorId> {
        match &self.weight {
            Weight::Dense(position) => vec![*position],
            Weight::Set(set) => vec![set.codes, set.scales, set.biases],
        }
    }
}
