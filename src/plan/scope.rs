//! [`Scope`]: the keys a pattern matched; [`Facts`]: how each of them is packed; [`Unit`]: matches grouped by affine set,
//! so that no set is edited twice or in part by accident.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::program::Member;
use super::working_precision::Class;
use crate::checkpoint::{AffineSet, Checkpoint, Packing, TensorId, TensorIndex, packing};
use crate::surgery::{Matcher, Operation};

/// The keys one operation reaches, ascending.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Matched by the pattern and by no exclude.
    pub matched: Vec<TensorId>,
    /// Matched by the pattern, taken out by an exclude.
    pub excluded: usize,
    /// Positions of the excludes that match nothing of what the pattern matches.
    pub idle: Vec<usize>,
}

impl Scope {
    /// Whether the operation reaches a tensor.
    pub(super) fn reaches(&self, id: TensorId) -> bool {
        self.matched.binary_search(&id).is_ok()
    }
}

/// Matches the pattern and excludes of each operation against the keys, in parallel; operations that ask the same share
/// one scope.
pub(super) fn gather(operations: &[Operation], index: &TensorIndex) -> Vec<Arc<Scope>> {
    let mut places: HashMap<(&str, Vec<&str>), usize> = HashMap::new();
    let mut distinct: Vec<&Operation> = Vec::new();
    let mut asked = Vec::with_capacity(operations.len());
    for operation in operations {
        let excludes = operation.exclude.iter().map(|exclude| exclude.value.as_str()).collect();
        let place = places.entry((operation.pattern.value.as_str(), excludes)).or_insert_with(|| {
            distinct.push(operation);
            distinct.len() - 1
        });
        asked.push(*place);
    }
    let scopes: Vec<Arc<Scope>> =
        distinct.par_iter().map(|operation| Arc::new(scan(operation, index))).collect();
    asked.into_iter().map(|place| Arc::clone(&scopes[place])).collect()
}

fn scan(operation: &Operation, index: &TensorIndex) -> Scope {
    let mut scope = Scope::default();
    let excludes: Vec<Matcher> = operation.exclude.iter().map(|e| Matcher::new(&e.value)).collect();
    let mut met = vec![false; excludes.len()];
    let matcher = Matcher::new(&operation.pattern.value);
    let range = index.with_prefix(matcher.head());
    for (offset, (key, _)) in index.entries()[range.clone()].iter().enumerate() {
        if !matcher.matches(key.as_str()) {
            continue;
        }
        let mut out = false;
        for (exclude, met) in excludes.iter().zip(&mut met) {
            // One that has matched before need not be tried once another has matched.
            if !(out && *met) && exclude.matches(key.as_str()) {
                out = true;
                *met = true;
            }
        }
        if out {
            scope.excluded += 1;
        } else {
            scope.matched.push(TensorId::new(range.start + offset));
        }
    }
    scope.idle = (0..met.len()).filter(|&place| !met[place]).collect();
    scope
}

/// How a tensor is packed, as its neighbours in the index show.
#[derive(Debug, Clone)]
pub(super) enum Fact {
    /// A tensor on its own.
    Plain(Class),
    /// A member of a complete affine set.
    Member(Arc<AffineSet>),
    /// A member of an incomplete or inconsistent set, and why it is.
    Incomplete(Arc<str>),
    /// Packed in another way than affine: its name.
    Foreign(Arc<str>),
}

/// The packing of every tensor that some operation reaches, each looked up once.
#[derive(Debug)]
pub(super) struct Facts<'b> {
    base: &'b Checkpoint,
    slots: Vec<u32>,
    found: Vec<Fact>,
}

impl<'b> Facts<'b> {
    /// Looks at every reached position, in parallel.
    pub(super) fn gather(base: &'b Checkpoint, scopes: &[Arc<Scope>]) -> Self {
        let mut slots = vec![u32::MAX; base.weights.index.entries().len()];
        let mut reached = Vec::new();
        for &id in scopes.iter().flat_map(|scope| &scope.matched) {
            let slot = &mut slots[id.position()];
            if *slot == u32::MAX {
                *slot = u32::try_from(reached.len()).unwrap_or(u32::MAX);
                reached.push(id);
            }
        }
        let found = reached.par_iter().map(|&id| look(base, id)).collect();
        Self { base, slots, found }
    }

    /// How any tensor is packed, reached or not.
    pub(super) fn of(&self, id: TensorId) -> Fact {
        let known = self.slots.get(id.position()).and_then(|&slot| self.found.get(slot as usize));
        known.cloned().unwrap_or_else(|| look(self.base, id))
    }
}

impl Facts<'_> {
    /// What a tensor is to an affine set.
    pub(super) fn member(&self, id: TensorId) -> Member {
        let (key, _) = &self.base.weights.index[id];
        // Most tensors are known by their names to be neither scales nor biases.
        if !matches!(key.suffix(), "scales" | "biases") {
            return Member::None;
        }
        match self.of(id) {
            Fact::Member(set) if set.scales == id => Member::Scales,
            Fact::Member(set) if set.biases == id => Member::Biases,
            Fact::Member(_) | Fact::Plain(_) | Fact::Incomplete(_) | Fact::Foreign(_) => Member::None,
        }
    }
}

fn look(base: &Checkpoint, id: TensorId) -> Fact {
    let index = &base.weights.index;
    let (key, info) = &index[id];
    let class = Class::of(info.dtype);
    // A linear bias is beside a set, not in it.
    if key.suffix() == "bias" && class != Class::Integer {
        return Fact::Plain(class);
    }
    match packing(index, &base.config, id) {
        Packing::Affine(set) if [set.codes, set.scales, set.biases].contains(&id) => {
            Fact::Member(Arc::new(set))
        }
        Packing::Dense | Packing::Affine(_) => Fact::Plain(class),
        Packing::Incomplete(reason) => Fact::Incomplete(reason.into()),
        Packing::Foreign(name) => Fact::Foreign(name.into()),
    }
}

/// A matched tensor, or matched members of one set together.
#[derive(Debug)]
pub(super) struct Unit {
    /// The first matched position: the unit's name in messages.
    pub first: TensorId,
    /// Number of matched keys in it.
    pub keys: usize,
    /// How it is packed.
    pub what: What,
}

/// How a [`Unit`] is packed.
#[derive(Debug)]
pub(super) enum What {
    /// A tensor on its own.
    Plain(Class),
    /// Members of an affine set.
    Set {
        /// The set.
        set: Arc<AffineSet>,
        /// Whether the pattern matched its `.weight`, `.scales`, `.biases`.
        matched: [bool; 3],
    },
    /// An incomplete or inconsistent set, and why it is.
    Incomplete(Arc<str>),
    /// Packed in another way: its name.
    Foreign(Arc<str>),
}

impl Unit {
    /// The tensor that names the unit in messages: a set's `.weight`.
    pub(super) fn name(&self) -> TensorId {
        match &self.what {
            What::Set { set, .. } => set.codes,
            What::Plain(_) | What::Incomplete(_) | What::Foreign(_) => self.first,
        }
    }
}

/// Gathers matched positions into units, in key order.
pub(super) fn units(facts: &Facts<'_>, scope: &Scope) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::with_capacity(scope.matched.len());
    let mut sets: HashMap<TensorId, usize> = HashMap::new();
    for &id in &scope.matched {
        let what = match facts.of(id) {
            Fact::Plain(class) => What::Plain(class),
            Fact::Incomplete(reason) => What::Incomplete(reason),
            Fact::Foreign(name) => What::Foreign(name),
            Fact::Member(set) => {
                let member = [set.codes, set.scales, set.biases].map(|member| member == id);
                if let Some(&known) = sets.get(&set.codes) {
                    units[known].keys += 1;
                    if let What::Set { matched, .. } = &mut units[known].what {
                        for (old, new) in matched.iter_mut().zip(member) {
                            *old |= new;
                        }
                    }
                    continue;
                }
                sets.insert(set.codes, units.len());
                What::Set { set, matched: member }
            }
        };
        units.push(Unit { first: id, keys: 1, what });
    }
    units
}
