//! [`TensorIndex`]: every tensor of a checkpoint, in key order.

use std::ops::{Index, Range};

use rayon::prelude::*;

use super::{Dtype, Key};

/// Where a tensor's bytes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A byte range of a shard (absolute in the file).
    Stored {
        /// Position in `Weights::shards`.
        shard: usize,
        /// Absolute byte offsets in that file.
        range: Range<u64>,
    },
    /// The same bytes as another tensor of the index (a restored `lm_head`).
    Tied(Key),
}

/// A tensor according to its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// Where its bytes are.
    pub origin: Origin,
}

impl TensorInfo {
    /// Its size in bytes.
    #[must_use]
    pub fn byte_length(&self) -> u64 {
        // Headers whose shape and dtype overflow are refused.
        super::byte_length(self.dtype, &self.shape).unwrap_or_default()
    }
}

/// A tensor of a [`TensorIndex`]: its position in key order. It means nothing to another index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(usize);

impl TensorId {
    /// The tensor at a position.
    #[must_use]
    pub const fn new(position: usize) -> Self {
        Self(position)
    }

    /// Its position in [`TensorIndex::entries`].
    #[must_use]
    pub const fn position(self) -> usize {
        self.0
    }
}

/// Every tensor, ordered by key (bytewise).
#[derive(Debug, Clone, Default)]
pub struct TensorIndex {
    entries: Vec<(Key, TensorInfo)>,
}

impl TensorIndex {
    /// Sorts the entries by key. Keys must be distinct.
    #[must_use]
    pub fn new(mut entries: Vec<(Key, TensorInfo)>) -> Self {
        if !entries.is_sorted_by(|(a, _), (b, _)| a <= b) {
            // A stable sort makes use of the sorted runs that shards give.
            entries.par_sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        Self { entries }
    }

    /// The tensor of that name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&TensorInfo> {
        self.position(key).map(|id| &self[id].1)
    }

    /// The tensor of that name, by its position in key order.
    #[must_use]
    pub fn position(&self, key: &str) -> Option<TensorId> {
        self.entries.binary_search_by(|(entry, _)| entry.as_str().cmp(key)).ok().map(TensorId)
    }

    /// All tensors in key order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = TensorId> + use<> {
        (0..self.entries.len()).map(TensorId)
    }

    /// All entries in key order; positions are those of [`position`](Self::position).
    #[must_use]
    pub fn entries(&self) -> &[(Key, TensorInfo)] {
        &self.entries
    }

    /// Gives the entries back, in key order.
    #[must_use]
    pub fn into_entries(self) -> Vec<(Key, TensorInfo)> {
        self.entries
    }

    /// Positions of the keys that begin with `prefix`: one run, because the order is bytewise.
    #[must_use]
    pub fn with_prefix(&self, prefix: &str) -> Range<usize> {
        let start = self.entries.partition_point(|(key, _)| key.as_str() < prefix);
        let length = self.entries[start..].partition_point(|(key, _)| key.as_str().starts_with(prefix));
        start..start + length
    }

    /// Position of the key `{module}.{suffix}`, looked for around `near` first: the members of a module are neighbours.
    pub(super) fn sibling(&self, near: TensorId, module: &str, suffix: &str) -> Option<TensorId> {
        const AROUND: usize = 8;
        let is_it = |key: &Key| key.stem() == module && key.suffix() == suffix;
        let inside = |key: &Key| key.as_str().strip_prefix(module).is_some_and(|rest| rest.starts_with('.'));
        let TensorId(near) = near;
        let start = near.saturating_sub(AROUND);
        let end = self.entries.len().min(near + AROUND + 1);
        let window = self.entries.get(start..end)?;
        if let Some(place) = window.iter().position(|(key, _)| is_it(key)) {
            return Some(TensorId(start + place));
        }
        // The whole module was in view if another module (or the end of the index) is at both ends.
        let whole = |edge: bool, entry: Option<&(Key, TensorInfo)>| {
            edge || entry.is_some_and(|(key, _)| !inside(key))
        };
        if whole(start == 0, window.first()) && whole(end == self.entries.len(), window.last()) {
            return None;
        }
        self.position(&format!("{module}.{suffix}"))
    }
}

impl Index<TensorId> for TensorIndex {
    type Output = (Key, TensorInfo);

    fn index(&self, TensorId(position): TensorId) -> &Self::Output {
        &self.entries[position]
    }
}

#[cfg(test)]
mod tests {
    use super::{Dtype, Key, Origin, TensorId, TensorIndex, TensorInfo};

    fn index(keys: &[&str]) -> TensorIndex {
        let info = |n| TensorInfo {
            dtype: Dtype::U8,
            shape: vec![n],
            origin: Origin::Stored { shard: 0, range: 0..0 },
        };
        TensorIndex::new(keys.iter().enumerate().map(|(n, key)| (Key::from(*key), info(n))).collect())
    }

    #[test]
    fn an_index_is_in_bytewise_key_order() {
        let index = index(&["b", "a.10.w", "a.2.w", "B"]);
        let keys: Vec<_> = index.entries().iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["B", "a.10.w", "a.2.w", "b"]);
        assert_eq!(index.position("a.2.w"), Some(TensorId::new(2)));
        assert_eq!(index.get("a.2.w").map(|info| info.shape.clone()), Some(vec![2]));
        assert_eq!(index.get("a"), None);
    }

    #[test]
    fn a_prefix_is_one_run() {
        let index = index(&["a.w", "a.b.w", "a.b.x", "a.bc", "b"]);
        assert_eq!(index.with_prefix("a.b."), 0..2);
        assert_eq!(index.with_prefix(""), 0..5);
        assert_eq!(index.with_prefix("c"), 5..5);
    }

    #[test]
    fn siblings_are_found_near_and_far() {
        let many: Vec<String> = (0..40).map(|n| format!("m.sub{n:02}.weight")).collect();
        let mut keys: Vec<&str> = many.iter().map(String::as_str).collect();
        keys.extend(["m.weight", "m.aaa", "m.scales", "n.weight"]);
        let index = index(&keys);
        for near in [index.position("m.weight"), index.position("m.aaa")] {
            for (suffix, there) in [("weight", true), ("aaa", true), ("scales", true), ("biases", false)] {
                let found = near.and_then(|near| index.sibling(near, "m", suffix));
                assert_eq!(found, index.position(&format!("m.{suffix}")), "{suffix}");
                assert_eq!(found.is_some(), there, "{suffix}");
            }
        }
    }
}
