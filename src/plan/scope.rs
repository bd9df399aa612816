//! [`Scope`]: the keys a pattern matched; [`Facts`]: how each of them is packed; [`Unit`]: matches gathered into
//! affine sets, so that nothing is edited twice and nothing half.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::number::Class;
use crate::checkpoint::{AffineSet, Checkpoint, Key, Packing, TensorInfo, packing};
use crate::surgery::{Operation, PatternSet};

/// The keys one operation reaches, as ascending positions in the base's index.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Matched by the pattern and by no exclude.
    pub matched: Vec<usize>,
    /// Matched by the pattern, taken out by an exclude.
    pub excluded: usize,
}

impl Scope {
    /// Whether the operation reaches that position.
    pub(super) fn reaches(&self, position: usize) -> bool {
        self.matched.binary_search(&position).is_ok()
    }
}

/// Matches every pattern and exclude of the file against every key, in one pass over the index.
pub(super) fn gather(operations: &[Operation], entries: &[(Key, TensorInfo)]) -> Vec<Scope> {
    if operations.is_empty() {
        return Vec::new();
    }
    let patterns = Patterns::new(operations);
    let parts: Vec<Vec<Scope>> = entries
        .par_chunks(4096)
        .enumerate()
        .map(|(i, chunk)| patterns.scan(chunk, i * 4096, operations.len()))
        .collect();
    let mut scopes: Vec<Scope> = (0..operations.len()).map(|_| Scope::default()).collect();
    for part in parts {
        for (scope, part) in scopes.iter_mut().zip(part) {
            scope.matched.extend_from_slice(&part.matched);
            scope.excluded += part.excluded;
        }
    }
    scopes
}

/// All patterns of a file; `owner` says whose each is and whether it excludes.
struct Patterns {
    set: PatternSet,
    owner: Vec<(usize, bool)>,
}

impl Patterns {
    fn new(operations: &[Operation]) -> Self {
        let (mut all, mut owner) = (Vec::new(), Vec::new());
        for (i, operation) in operations.iter().enumerate() {
            all.push(&operation.pattern.value);
            owner.push((i, false));
            for exclude in &operation.exclude {
                all.push(&exclude.value);
                owner.push((i, true));
            }
        }
        Self { set: PatternSet::new(all), owner }
    }

    fn scan(&self, chunk: &[(Key, TensorInfo)], first: usize, operations: usize) -> Vec<Scope> {
        let mut scopes: Vec<Scope> = (0..operations).map(|_| Scope::default()).collect();
        let mut hits = Vec::new();
        let mut excluded = vec![false; operations];
        for (i, (key, _)) in chunk.iter().enumerate() {
            self.set.matches_into(key.as_str(), &mut hits);
            for &hit in &hits {
                if let (operation, true) = self.owner[hit] {
                    excluded[operation] = true;
                }
            }
            for &hit in &hits {
                match self.owner[hit] {
                    (operation, false) if excluded[operation] => scopes[operation].excluded += 1,
                    (operation, false) => scopes[operation].matched.push(first + i),
                    (_, true) => {}
                }
            }
            for &hit in &hits {
                excluded[self.owner[hit].0] = false;
            }
        }
        scopes
    }
}

/// What a tensor is, as far as its neighbours in the index tell.
#[derive(Debug, Clone)]
pub(super) enum Fact {
    /// A tensor on its own.
    Plain(Class),
    /// A member of a complete affine set.
    Member(Arc<AffineSet>),
    /// A member of a set that is not complete or consistent: why.
    Incomplete(Arc<str>),
    /// Packed by something other than affine: its name.
    Foreign(Arc<str>),
}

/// Facts about every position that some operation reaches, each found once.
#[derive(Debug)]
pub(super) struct Facts<'b> {
    base: &'b Checkpoint,
    slots: Vec<u32>,
    found: Vec<Fact>,
}

impl<'b> Facts<'b> {
    /// Looks at every reached position, in parallel.
    pub(super) fn gather(base: &'b Checkpoint, scopes: &[Scope]) -> Self {
        let mut slots = vec![u32::MAX; base.weights.index.entries().len()];
        let mut reached = Vec::new();
        for &position in scopes.iter().flat_map(|scope| &scope.matched) {
            if slots[position] == u32::MAX {
                slots[position] = u32::try_from(reached.len()).unwrap_or(u32::MAX);
                reached.push(position);
            }
        }
        let found = reached.par_iter().map(|&position| look(base, position)).collect();
        Self { base, slots, found }
    }

    /// The fact about any position, reached or not.
    pub(super) fn of(&self, position: usize) -> Fact {
        let known = self.slots.get(position).and_then(|&slot| self.found.get(slot as usize));
        known.cloned().unwrap_or_else(|| look(self.base, position))
    }
}

fn look(base: &Checkpoint, position: usize) -> Fact {
    let index = &base.weights.index;
    let (key, info) = &index.entries()[position];
    let class = Class::of(info.dtype);
    // A linear bias stands beside a set, not in it.
    if key.suffix() == "bias" && class != Class::Integer {
        return Fact::Plain(class);
    }
    match packing(index, &base.config, position) {
        Packing::Affine(set) if [set.codes, set.scales, set.biases].contains(&position) => {
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
    pub first: usize,
    /// How many matched keys it stands for.
    pub keys: usize,
    /// What it is.
    pub what: What,
}

/// What a [`Unit`] is.
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
    /// A set that is not complete or consistent.
    Incomplete(Arc<str>),
    /// Something packed otherwise.
    Foreign(Arc<str>),
}

impl Unit {
    /// The tensor that names the unit in messages: a set's `.weight`.
    pub(super) fn name(&self) -> usize {
        match &self.what {
            What::Set { set, .. } => set.codes,
            _ => self.first,
        }
    }
}

/// Gathers matched positions into units, in key order.
pub(super) fn units(facts: &Facts<'_>, scope: &Scope) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::with_capacity(scope.matched.len());
    let mut sets: HashMap<usize, usize> = HashMap::new();
    for &position in &scope.matched {
        let what = match facts.of(position) {
            Fact::Plain(class) => What::Plain(class),
            Fact::Incomplete(reason) => What::Incomplete(reason),
            Fact::Foreign(name) => What::Foreign(name),
            Fact::Member(set) => {
                let member = [set.codes, set.scales, set.biases].map(|p| p == position);
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
        units.push(Unit { first: position, keys: 1, what });
    }
    units
}
