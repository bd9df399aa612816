//! [`Cache`]: keys and values of the positions already seen, so that each is computed once.

use crate::mlx::{self, Array, Result};

/// Positions by which the buffers grow: seldom enough to make copies cheap, often enough to waste little.
const STEP: usize = 256;

/// One sequence's cache of a whole model.
#[derive(Debug, Clone)]
pub struct Cache {
    layers: Vec<LayerCache>,
    len: usize,
    reach: usize,
}

/// Keys and values of one layer, `[1, kv_heads, capacity, head_dim]` each.
#[derive(Debug, Clone, Default)]
pub struct LayerCache {
    held: Option<(Array, Array)>,
    len: usize,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new(layers: usize) -> Self {
        Self { layers: vec![LayerCache::default(); layers], len: 0, reach: 0 }
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

    /// Forgets all positions from `len` on, so that another continuation can share the beginning.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        for layer in &mut self.layers {
            layer.len = layer.len.min(len);
        }
    }

    /// Says that the sequence is going to have so many positions. Families whose positions are stretched for long texts
    /// alone have to know at its beginning; later it has no effect.
    pub fn expect(&mut self, positions: usize) {
        if self.is_empty() {
            self.reach = self.reach.max(positions);
        }
    }

    /// Positions that the sequence is going to have, as was said at its beginning.
    #[must_use]
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.arrays().map(Array::bytes).sum()
    }

    /// One layer's part.
    pub(crate) fn layer_mut(&mut self, layer: usize) -> Option<&mut LayerCache> {
        self.layers.get_mut(layer)
    }

    /// Notes that `count` further positions went through all layers.
    pub(crate) fn advance(&mut self, count: usize) {
        self.len += count;
    }

    /// Everything it holds.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.layers.iter().filter_map(|layer| layer.held.as_ref()).flat_map(|(keys, values)| [keys, values])
    }
}

impl LayerCache {
    /// Positions seen before the next `extend`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes keys and values `[1, kv_heads, T, head_dim]` of the next T positions, and returns those of the last
    /// `visible` positions.
    pub(crate) fn extend(&mut self, keys: &Array, values: &Array, visible: usize) -> Result<(Array, Array)> {
        let count = usize::try_from(keys.dim(2)).unwrap_or(0);
        let (start, end) = (self.len, self.len + count);
        let (held_keys, held_values) = match self.held.take() {
            Some((held_keys, held_values)) => {
                (grown(held_keys, start, end)?, grown(held_values, start, end)?)
            }
            None => (room(keys, end.next_multiple_of(STEP))?, room(values, end.next_multiple_of(STEP))?),
        };
        let held_keys = write(held_keys, keys, start, end)?;
        let held_values = write(held_values, values, start, end)?;
        let from = end.saturating_sub(visible);
        let seen = (window(&held_keys, from, end)?, window(&held_values, from, end)?);
        self.held = Some((held_keys, held_values));
        self.len = end;
        Ok(seen)
    }
}

/// Room for `capacity` positions of arrays like `example`.
fn room(example: &Array, capacity: usize) -> Result<Array> {
    let shape = [example.dim(0), example.dim(1), mlx::int(capacity)?, example.dim(3)];
    Array::zeros(&shape, example.dtype())
}

/// The same buffer, or a larger one that begins with its first `start` positions.
fn grown(held: Array, start: usize, end: usize) -> Result<Array> {
    if usize::try_from(held.dim(2)).is_ok_and(|capacity| capacity >= end) {
        return Ok(held);
    }
    let more = room(&held, end.next_multiple_of(STEP) - start)?;
    Array::concatenate(&[&window(&held, 0, start)?, &more], 2)
}

fn write(held: Array, update: &Array, start: usize, end: usize) -> Result<Array> {
    let from = [0, 0, mlx::int(start)?, 0];
    let to = [held.dim(0), held.dim(1), mlx::int(end)?, held.dim(3)];
    held.updated(update, &from, &to)
}

fn window(held: &Array, from: usize, to: usize) -> Result<Array> {
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

    #[test]
    fn what_goes_in_comes_out_across_growth_and_truncation() {
        let mut layer = LayerCache::default();
        let mut seen = 0;
        for count in [1, 300, 1, 255, 600] {
            let new = positions(seen, seen + count);
            let (keys, values) = layer.extend(&new, &new, usize::MAX).unwrap();
            seen += count;
            let wanted = positions(0, seen).to_f32().unwrap();
            assert_eq!(keys.to_f32().unwrap(), wanted);
            assert_eq!(values.to_f32().unwrap(), wanted);
        }
        layer.len = 10;
        let (keys, _) = layer.extend(&positions(10, 12), &positions(10, 12), 4).unwrap();
        assert_eq!(keys.to_f32().unwrap(), [8.0, 9.0, 10.0, 11.0]);
    }
}
