//! [`Cache`]: keys and values of the positions already seen, so that each is computed once.

use super::Window;
use crate::mlx::{self, Array, Result};

/// Buffers grow by this many positions: copies are rare, and little memory is wasted.
const STEP: usize = 256;

/// One sequence's cache of a whole model.
#[derive(Debug, Clone)]
pub struct Cache {
    layers: Vec<LayerCache>,
    len: usize,
    reach: usize,
    /// The original context of a model that rotates longer sequences in another way.
    original_max_positions: Option<usize>,
}

/// Keys and values of one layer, `[1, kv_heads, capacity, head_dim]` each. Positions before a sliding window are dropped when
/// room is needed, so a windowed layer holds its window, the new positions, and a step.
#[derive(Debug, Clone, Default)]
pub(crate) struct LayerCache {
    held: Option<(Array, Array)>,
    /// The first position held.
    base: usize,
    len: usize,
    window: Window,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new(layers: usize) -> Self {
        Self { layers: vec![LayerCache::default(); layers], len: 0, reach: 0, original_max_positions: None }
    }

    /// Sets the original context of a model that rotates longer sequences in another way.
    #[must_use]
    pub(crate) fn with_original_max_positions(self, original_max_positions: Option<usize>) -> Self {
        Self { original_max_positions, ..self }
    }

    /// Positions seen.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a sequence of `reach` positions in total that shares the first `len` with this one can continue from there:
    /// nothing that it needs was dropped, and its positions are rotated in the same way.
    #[must_use]
    pub fn can_resume(&self, len: usize, reach: usize) -> bool {
        let is_long = |reach: usize| self.original_max_positions.is_some_and(|longest| reach > longest);
        len == 0
            || (len <= self.len
                && is_long(reach) == is_long(self.reach.max(self.len))
                && self.layers.iter().all(|layer| layer.holds_before(len)))
    }

    /// Drops all positions from `len` on, so that another continuation can share the beginning. Returns false, and drops
    /// nothing, if a sliding window has dropped positions that the continuation would need.
    #[must_use = "if it is false, nothing was dropped"]
    pub fn truncate(&mut self, len: usize) -> bool {
        if len >= self.len {
            return true;
        }
        if !self.layers.iter().all(|layer| layer.holds_before(len)) {
            return false;
        }
        self.len = len;
        for layer in &mut self.layers {
            if len == 0 {
                *layer = LayerCache::default();
            }
            layer.len = layer.len.min(len);
        }
        true
    }

    /// Sets the expected final length of the sequence. Families that rotate long sequences in another way need it before the
    /// first position; later it has no effect.
    pub fn expect(&mut self, positions: usize) {
        if self.is_empty() {
            self.reach = self.reach.max(positions);
        }
    }

    /// Expected final length of the sequence in positions.
    #[must_use]
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.arrays().map(Array::bytes).sum()
    }

    /// One layer's part.
    pub(crate) fn layer_mut(&mut self, layer: usize) -> Option<&mut LayerCache> {
        self.layers.get_mut(layer)
    }

    /// Records that `count` further positions went through all layers.
    pub(crate) fn advance(&mut self, count: usize) {
        self.len += count;
    }

    /// All arrays it holds.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.layers.iter().filter_map(|layer| layer.held.as_ref()).flat_map(|(keys, values)| [keys, values])
    }
}

impl LayerCache {
    /// Appends keys and values `[1, kv_heads, T, head_dim]` of the next T positions, and returns those of all positions that
    /// these can see.
    pub(crate) fn extend(&mut self, keys: &Array, values: &Array, window: Window) -> Result<(Array, Array)> {
        let count = usize::try_from(keys.dim(2)).unwrap_or(0);
        let (start, end) = (self.len, self.len + count);
        let from = first_seen(start, window);
        self.window = window;
        let mut base = self.base;
        let (held_keys, held_values) = match self.held.take() {
            Some((held_keys, held_values)) if capacity(&held_keys) >= end - base => (held_keys, held_values),
            Some((held_keys, held_values)) => {
                // Positions before the window are dropped. Every copy makes room for a step, or the next position would
                // need another copy.
                let wanted = if from > base { end - from + STEP } else { end - base };
                let kept = (from.max(base) - base, start - base);
                base = from.max(base);
                let moved = |held: &Array| moved(held, kept, wanted.next_multiple_of(STEP));
                (moved(&held_keys)?, moved(&held_values)?)
            }
            None => {
                let capacity = end.next_multiple_of(STEP);
                (room(keys, capacity)?, room(values, capacity)?)
            }
        };
        let held_keys = write(held_keys, keys, start - base, end - base)?;
        let held_values = write(held_values, values, start - base, end - base)?;
        let seen = (part(&held_keys, from - base, end - base)?, part(&held_values, from - base, end - base)?);
        self.held = Some((held_keys, held_values));
        (self.base, self.len) = (base, end);
        Ok(seen)
    }

    /// Whether all positions that position `len` would see are still there.
    fn holds_before(&self, len: usize) -> bool {
        len == 0 || self.base <= first_seen(len, self.window)
    }
}

/// The first position that position `at` sees.
fn first_seen(at: usize, window: Window) -> usize {
    window.map_or(0, |window| (at + 1).saturating_sub(window))
}

fn capacity(held: &Array) -> usize {
    usize::try_from(held.dim(2)).unwrap_or(0)
}

/// Room for `capacity` positions of arrays like `example`.
fn room(example: &Array, capacity: usize) -> Result<Array> {
    let shape = [example.dim(0), example.dim(1), mlx::int(capacity)?, example.dim(3)];
    Array::zeros(&shape, example.dtype())
}

/// A buffer of another capacity that begins with a part of this one.
fn moved(held: &Array, (from, to): (usize, usize), capacity: usize) -> Result<Array> {
    let more = room(held, capacity - (to - from))?;
    Array::concatenate(&[&part(held, from, to)?, &more], 2)
}

fn write(held: Array, update: &Array, start: usize, end: usize) -> Result<Array> {
    let from = [0, 0, mlx::int(start)?, 0];
    let to = [held.dim(0), held.dim(1), mlx::int(end)?, held.dim(3)];
    held.updated(update, &from, &to)
}

fn part(held: &Array, from: usize, to: usize) -> Result<Array> {
    let start = [0, 0, mlx::int(from)?, 0];
    let stop = [held.dim(0), held.dim(1), mlx::int(to)?, held.dim(3)];
    held.slice(&start, &stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys whose only value is their position.
    fn positions(from: usize, to: usize) -> Array {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let values: Vec<f32> = (from..to).map(|position| position as f32).collect();
        Array::from_f32(&values, &[1, 1, mlx::int(values.len()).unwrap(), 1]).unwrap()
    }

    /// Appends positions in these counts, and checks after each what is visible and that the memory stays bounded.
    #[track_caller]
    fn check(layer: &mut LayerCache, counts: &[usize], window: Window) {
        for count in counts {
            let (start, end) = (layer.len, layer.len + count);
            let new = positions(start, end);
            let (keys, values) = layer.extend(&new, &new, window).unwrap();
            let wanted = positions(first_seen(start, window), end).to_f32().unwrap();
            assert_eq!(keys.to_f32().unwrap(), wanted);
            assert_eq!(values.to_f32().unwrap(), wanted);
            let held = capacity(&layer.held.as_ref().unwrap().0);
            let largest = counts.iter().max().unwrap();
            assert!(window.is_none_or(|window| held <= window + largest + 2 * STEP), "{held} are held");
        }
    }

    #[test]
    fn what_goes_in_comes_out_across_growth_and_truncation() {
        let mut layer = LayerCache::default();
        check(&mut layer, &[1, 300, 1, 255, 600], None);
        layer.len = 10;
        check(&mut layer, &[2], None);
    }

    #[test]
    fn a_window_sees_what_it_should_and_holds_no_more_than_it_needs() {
        for window in [1, 4, 255, 256, 257, 700] {
            check(&mut LayerCache::default(), &[1, 300, 1, 255, 600, 1, 1, 400, 400, 400], Some(window));
            check(&mut LayerCache::default(), &[1; 900], Some(window));
        }
    }

    fn cache(window: Window, len: usize) -> Cache {
        let mut cache = Cache::new(2);
        for (layer, window) in [(0, window), (1, None)] {
            let new = positions(0, 100);
            for _ in 0..len / 100 {
                cache.layer_mut(layer).unwrap().extend(&new, &new, window).unwrap();
            }
        }
        cache.advance(len);
        cache
    }

    #[test]
    fn a_cache_can_be_cut_where_its_windows_still_have_what_came_before() {
        let mut whole = cache(None, 2000);
        assert!(whole.can_resume(1, 5000));
        assert!(whole.truncate(1));
        assert_eq!(whole.len(), 1);

        let mut sliding = cache(Some(50), 2000);
        assert!(!sliding.can_resume(1000, 2000));
        assert!(!sliding.truncate(1000));
        assert_eq!(sliding.len(), 2000);
        assert!(sliding.can_resume(1990, 2000));
        assert!(sliding.can_resume(0, 2000));
        assert!(!sliding.can_resume(2001, 2000));
        assert!(sliding.truncate(1990));
        assert!(sliding.truncate(0));
        assert!(sliding.is_empty());
        assert!(sliding.layer_mut(0).unwrap().held.is_none());
    }

    #[test]
    fn a_short_text_cannot_become_a_long_one_where_those_are_turned_otherwise() {
        let mut cache = Cache::new(1).with_original_max_positions(Some(64));
        cache.expect(40);
        cache.advance(20);
        cache.expect(100);
        assert!(cache.can_resume(20, 64));
        assert!(!cache.can_resume(20, 65));
        assert!(cache.can_resume(0, 65));
    }
}
