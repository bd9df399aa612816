//! [`Module`]: the keys under one parent that a pattern reaches, and the others under it.

use std::collections::HashMap;
use std::ops::Range;

use crate::checkpoint::{Key, TensorId, TensorInfo, is_other_tower};
use crate::plan::planned_operation::{Context, Faults, unusable};
use crate::plan::scope::{Scope, units};

/// How many matched keys belong to a linear module's weight (or set) and to its bias.
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

/// The keys under one parent, such as `model.layers.0.mlp`.
#[derive(Debug)]
pub(super) struct Module<'a> {
    /// The parent.
    pub parent: &'a str,
    /// Positions of all keys under it, reached or not.
    run: Range<usize>,
    /// What is reached, leaf by leaf.
    touched: Vec<(&'a str, Touch)>,
}

impl<'a> Module<'a> {
    fn new(entries: &[(Key, TensorInfo)], parent: &'a str, near: usize) -> Self {
        Self { parent, run: run(entries, parent, near), touched: Vec::new() }
    }

    /// What is reached of a leaf.
    pub(super) fn touch(&self, leaf: &str) -> Touch {
        self.touched.iter().find(|(name, _)| *name == leaf).map(|(_, touch)| *touch).unwrap_or_default()
    }

    /// The leaves that are reached.
    pub(super) fn leaves(&self) -> impl Iterator<Item = &'a str> {
        self.touched.iter().map(|(leaf, _)| *leaf)
    }

    /// How many keys are reached.
    pub(super) fn keys(&self) -> usize {
        self.touched.iter().map(|(_, touch)| touch.keys()).sum()
    }

    /// The position of `{parent}.{leaf}.{suffix}`, or of `{parent}.{leaf}` where the suffix is empty.
    pub(super) fn position(&self, context: &Context<'_>, leaf: &str, suffix: &str) -> Option<TensorId> {
        let entries = &context.index().entries()[self.run.clone()];
        search(entries, self.parent.len() + 1, leaf, suffix)
            .map(|found| TensorId::new(self.run.start + found))
    }
}

/// The place of `{leaf}.{suffix}` among keys whose first `skip` bytes are equal. It builds no names, because it runs for
/// every module of every operation.
fn search(entries: &[(Key, TensorInfo)], skip: usize, leaf: &str, suffix: &str) -> Option<usize> {
    /// Up to this number of keys, a linear search is faster.
    const MAX_LINEAR: usize = 16;
    if entries.len() <= MAX_LINEAR {
        let is_it = |key: &Key| {
            let rest = key.as_str().get(skip..).and_then(|rest| rest.strip_prefix(leaf));
            rest.is_some_and(|rest| match suffix {
                "" => rest.is_empty(),
                _ => rest.strip_prefix('.') == Some(suffix),
            })
        };
        return entries.iter().position(|(key, _)| is_it(key));
    }
    let dot: &[u8] = if suffix.is_empty() { b"" } else { b"." };
    let compare = |key: &Key| {
        let rest = key.as_str().as_bytes().get(skip..).unwrap_or_default();
        rest.iter().cmp(leaf.as_bytes().iter().chain(dot).chain(suffix.as_bytes()))
    };
    entries.binary_search_by(|(key, _)| compare(key)).ok()
}

/// The positions of the keys under a parent; `near` is one of them.
fn run(entries: &[(Key, TensorInfo)], parent: &str, near: usize) -> Range<usize> {
    let inside = |at: usize| {
        entries.get(at).is_some_and(|(key, _)| {
            key.as_str().strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'))
        })
    };
    // Doubling steps find the ends of a small module in a few comparisons, and of a large one in few more.
    let (mut low, mut step) = (near, 1);
    while low > 0 && inside(low.saturating_sub(step)) {
        low = low.saturating_sub(step);
        step *= 2;
    }
    let mut start = low.saturating_sub(step);
    while start < low {
        let middle = start + (low - start) / 2;
        if inside(middle) { low = middle } else { start = middle + 1 }
    }
    let (mut high, mut step) = (near, 1);
    while inside(high + step) {
        high += step;
        step *= 2;
    }
    let mut end = (high + step).min(entries.len());
    while high + 1 < end {
        let middle = high + (end - high) / 2;
        if inside(middle) { high = middle } else { end = middle }
    }
    start..end
}

/// Sorts matched tensors by parent and leaf, parents in order. Skips towers other than the text model, and leaves that
/// `relevant` does not pick; relevant ones that cannot be edited become faults.
pub(super) fn reached<'a>(
    context: &Context<'a>,
    scope: &Scope,
    relevant: impl Fn(&str) -> bool,
    faults: &mut Faults,
) -> Vec<Module<'a>> {
    let entries = context.index().entries();
    let mut modules: Vec<Module<'a>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut last = 0;
    for unit in units(context.facts, scope) {
        let key = context.entry(unit.first).0;
        let Some((parent, leaf, is_bias)) = place(key.as_str()) else { continue };
        // Keys are in order, so most have the same parent as the one before.
        let is_new = modules.get(last).is_none_or(|module| module.parent != parent);
        if !relevant(leaf) || is_new && is_other_tower(key) || unusable(context, &unit, faults) {
            continue;
        }
        if is_new {
            last = *places.entry(parent).or_insert_with(|| {
                modules.push(Module::new(entries, parent, unit.first.position()));
                modules.len() - 1
            });
        }
        let touched = &mut modules[last].touched;
        let at = touched.iter().position(|(name, _)| *name == leaf).unwrap_or_else(|| {
            touched.push((leaf, Touch::default()));
            touched.len() - 1
        });
        let touch = &mut touched[at].1;
        *(if is_bias { &mut touch.bias } else { &mut touch.weight }) += unit.keys;
    }
    modules.sort_by_key(|module| module.parent);
    modules
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
    use crate::checkpoint::{Dtype, Origin, TensorIndex};
    use proptest::prelude::*;

    #[test]
    fn a_key_is_placed_by_parent_and_leaf() {
        assert_eq!(place("m.attn.q_proj.weight"), Some(("m.attn", "q_proj", false)));
        assert_eq!(place("m.attn.q_proj.bias"), Some(("m.attn", "q_proj", true)));
        assert_eq!(place("m.mlp.up_proj.scales"), Some(("m.mlp", "up_proj", false)));
        assert_eq!(place("m.mlp.experts.down_proj"), Some(("m.mlp.experts", "down_proj", false)));
        assert_eq!(place("weight"), None);
    }

    proptest! {
        #[test]
        fn a_run_is_every_key_under_a_parent(names in prop::collection::btree_set("[ab](\\.[abc]{1,2}){1,3}", 1..80)) {
            let info = TensorInfo { dtype: Dtype::F32, shape: vec![], origin: Origin::Stored { shard: 0, range: 0..0 } };
            let index = TensorIndex::new(names.iter().map(|name| (Key::from(name.as_str()), info.clone())).collect());
            for (near, name) in names.iter().enumerate() {
                for (end, _) in name.match_indices('.') {
                    let parent = &name[..end];
                    let under = run(index.entries(), parent, near);
                    prop_assert_eq!(&under, &index.with_prefix(&format!("{parent}.")));
                    for (leaf, suffix) in [("a", ""), ("a", "b"), ("ab", ""), ("b", "a.c"), ("c", "c")] {
                        let key = format!("{parent}.{leaf}{}{suffix}", if suffix.is_empty() { "" } else { "." });
                        let found = search(&index.entries()[under.clone()], end + 1, leaf, suffix);
                        prop_assert_eq!(found.map(|at| TensorId::new(under.start + at)), index.position(&key));
                    }
                }
            }
        }
    }
}
