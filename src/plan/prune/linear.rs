//! Linear modules by their place in the tree of names: rows, columns, and how a slice of them is zeroed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::draft::{Context, Draft, Tally, incomplete, unusable};
use super::super::number::Class;
use super::super::scope::{Fact, Scope, units};
use super::super::{Action, Region};
use crate::checkpoint::{AffineSet, is_other_tower};
use crate::diagnostic::Code;

/// A linear module of the base.
#[derive(Debug)]
pub(super) struct Linear {
    /// Its path, `P` of `P.weight`.
    pub path: String,
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

/// The linear module of that path, if the base has one.
///
/// # Errors
/// Why its rows and columns are not plain.
pub(super) fn find(context: &Context<'_>, path: String) -> Result<Option<Linear>, Obstacle> {
    let index = context.index();
    let Some(position) = index.position(&format!("{path}.weight")) else { return Ok(None) };
    let bias = index.position(&format!("{path}.bias"));
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
            return Err(Obstacle::new(Code::IncompleteAffineSet, incomplete(&path, &reason), help));
        }
        Fact::Foreign(name) => {
            let reason = format!("tensors quantized as {name} cannot be operated on");
            return Err(Obstacle::new(Code::UnsupportedQuantization, reason, dense));
        }
    };
    match context.entry(stored).1.shape[..] {
        [rows, stored_columns] => Ok(Some(Linear { path, weight, bias, rows, stored_columns })),
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

/// How many matched keys belong to a module's weight (or set) and to its linear bias.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Touch {
    /// Keys of its weight.
    pub weight: usize,
    /// Its linear bias.
    pub bias: usize,
}

impl Touch {
    /// All of them.
    pub(super) fn keys(&self) -> usize {
        self.weight + self.bias
    }
}

/// What is reached of one leaf.
pub(super) fn touch(touched: &BTreeMap<&str, Touch>, leaf: &str) -> Touch {
    touched.get(leaf).copied().unwrap_or_default()
}

/// What a pattern reaches: parent → leaf → what of it.
pub(super) type Reached<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Touch>>;

/// Sorts matched tensors by parent and leaf. Towers other than the text model and leaves that `relevant` does not
/// pick are left alone; relevant ones that cannot be edited are counted.
pub(super) fn reached<'a>(
    context: &Context<'a>,
    scope: &Scope,
    relevant: impl Fn(&str) -> bool,
    faults: &mut Tally,
) -> Reached<'a> {
    let mut reached = Reached::default();
    for unit in units(context.facts, scope) {
        let key = context.entry(unit.first).0;
        let Some((parent, leaf, is_bias)) = place(key.as_str()) else { continue };
        if !relevant(leaf) || is_other_tower(key) || unusable(context, &unit, faults) {
            continue;
        }
        let touch = reached.entry(parent).or_default().entry(leaf).or_default();
        *(if is_bias { &mut touch.bias } else { &mut touch.weight }) += unit.keys;
    }
    reached
}

/// Parent, leaf, and whether it is a linear bias. A key without a known suffix is a weight of its own
/// (`experts.down_proj`).
fn place(key: &str) -> Option<(&str, &str, bool)> {
    let (stem, suffix) = key.rsplit_once('.')?;
    match suffix {
        "weight" | "scales" | "biases" | "bias" => {
            let (parent, leaf) = stem.rsplit_once('.')?;
            Some((parent, leaf, suffix == "bias"))
        }
        leaf => Some((stem, leaf, false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_placed_by_parent_and_leaf() {
        assert_eq!(place("m.attn.q_proj.weight"), Some(("m.attn", "q_proj", false)));
        assert_eq!(place("m.attn.q_proj.bias"), Some(("m.attn", "q_proj", true)));
        assert_eq!(place("m.mlp.up_proj.scales"), Some(("m.mlp", "up_proj", false)));
        assert_eq!(place("m.mlp.experts.down_proj"), Some(("m.mlp.experts", "down_proj", false)));
        assert_eq!(place("weight"), None);
    }
}
