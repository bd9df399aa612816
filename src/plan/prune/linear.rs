//! Linear modules: rows, columns, and how a slice of them is zeroed.

use std::sync::Arc;

use super::super::draft::{Context, Draft, incomplete};
use super::super::number::Class;
use super::super::scope::Fact;
use super::super::{Action, Region};
use super::reached::Module;
use crate::checkpoint::AffineSet;
use crate::diagnostic::Code;

/// A linear module of the base.
#[derive(Debug)]
pub(super) struct Linear {
    /// Its weight.
    pub weight: Weight,
    /// `P.bias`, where there is one.
    pub bias: Option<usize>,
    /// Output features.
    pub rows: usize,
    /// Columns of the stored tensor that is zeroed: input features, or groups of a set.
    pub stored_columns: usize,
}

/// How a weight is stored.
#[derive(Debug)]
pub(super) enum Weight {
    /// One tensor.
    Dense(usize),
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
    /// A mistake of some code.
    pub(super) fn new(code: Code, reason: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), help: help.into() }
    }

    /// A layout that is not known well enough.
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
            let reason = format!("{} weights cannot be operated on", info.dtype);
            return Err(Obstacle::new(Code::UnsupportedQuantization, reason, dense));
        }
        Fact::Incomplete(reason) => {
            let help = "repair the checkpoint: `.weight`, `.scales` and `.biases` belong together";
            return Err(Obstacle::new(
                Code::IncompleteAffineSet,
                incomplete(&format!("{}.{leaf}", module.parent), &reason),
                help,
            ));
        }
        Fact::Foreign(name) => {
            let reason = format!("tensors quantized as {name} cannot be operated on");
            return Err(Obstacle::new(Code::UnsupportedQuantization, reason, dense));
        }
    };
    match context.entry(stored).1.shape[..] {
        [rows, _] if bias.is_some_and(|bias| context.entry(bias).1.shape != [rows]) => {
            let reason = "the bias does not have one number for each row of the weight";
            Err(Obstacle::layout(reason, "repair the checkpoint, or prune whole layers instead"))
        }
        [rows, stored_columns] => Ok(Some(Linear { weight, bias, rows, stored_columns })),
        ref shape => Err(not_flat(shape.len())),
    }
}

/// A weight that is no matrix.
pub(super) fn not_flat(dimensions: usize) -> Obstacle {
    if dimensions == 3 {
        let reason = "experts stacked in one tensor cannot be pruned by channel or head";
        return Obstacle::layout(
            reason,
            "use a checkpoint with tensors for each expert, or prune whole layers",
        );
    }
    let s = if dimensions == 1 { "" } else { "s" };
    let reason = format!("a weight of {dimensions} dimension{s} has no rows and columns");
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
    pub(super) fn zero(&self, region: &Region, draft: &mut Draft) {
        let zero = || Action::Zero { region: region.clone() };
        match &self.weight {
            Weight::Dense(position) => draft.edit(*position, zero()),
            Weight::Set(set) => {
                draft.edit(set.scales, zero());
                draft.edit(set.biases, zero());
            }
        }
    }

    /// The positions of its weight.
    pub(super) fn positions(&self) -> Vec<usize> {
        match &self.weight {
            Weight::Dense(position) => vec![*position],
            Weight::Set(set) => vec![set.codes, set.scales, set.biases],
        }
    }
}
