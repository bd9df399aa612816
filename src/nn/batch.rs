//! [`Batch`]: sequences that go through a model together, each at its own position of its own cache.

use super::{Cache, LayerCache};
use crate::mlx::{Array, Error, Result};

/// The sequences of one pass through a model. They have the same number of new tokens, after different numbers of
/// positions.
///
/// Everything but attention works on all sequences at once, so that weights are read once for the batch.
#[derive(Debug)]
pub struct Batch<'c> {
    caches: Vec<&'c mut Cache>,
    count: usize,
}

impl<'c> Batch<'c> {
    /// Tokens `[B, T]` and the B caches that they continue.
    ///
    /// # Errors
    /// The tokens are those of another number of sequences, or of none.
    pub(crate) fn new(tokens: &Array, caches: impl IntoIterator<Item = &'c mut Cache>) -> Result<Self> {
        let caches: Vec<&mut Cache> = caches.into_iter().collect();
        match *tokens.shape() {
            [rows, count] if rows > 0 && count > 0 && usize::try_from(rows) == Ok(caches.len()) => {
                Ok(Self { caches, count: usize::try_from(count).unwrap_or(0) })
            }
            ref shape => {
                Err(Error::new(format!("tokens {shape:?} are not those of {} sequences", caches.len())))
            }
        }
    }

    /// New positions of each sequence.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Positions before the new ones, for each sequence.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = usize> {
        self.caches.iter().map(|cache| cache.len())
    }

    /// Expected final length of each sequence, at least its length after this pass.
    pub(crate) fn reaches(&self) -> impl Iterator<Item = usize> {
        self.caches.iter().map(|cache| cache.reach().max(cache.len() + self.count))
    }

    /// One layer's part of one sequence's cache.
    ///
    /// # Errors
    /// The cache belongs to another model.
    pub(crate) fn layer(&mut self, row: usize, layer: usize) -> Result<&mut LayerCache> {
        let cache = self.caches.get_mut(row).and_then(|cache| cache.layer_mut(layer));
        cache.ok_or_else(|| Error::new("a cache is of another model".to_owned()))
    }

    /// Records that the new positions went through all layers.
    pub(crate) fn advance(&mut self) {
        for cache in &mut self.caches {
            cache.advance(self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_a_cache_for_each_row_of_tokens() {
        let tokens = |shape: &[i32]| Array::from_u32(&[7; 4], shape).unwrap();
        let (mut one, mut two) = (Cache::new(3), Cache::new(1));
        assert!(Batch::new(&tokens(&[4, 1]), [&mut one, &mut two]).is_err());
        assert!(Batch::new(&tokens(&[4]), [&mut one, &mut two]).is_err());
        let mut batch = Batch::new(&tokens(&[2, 2]), [&mut one, &mut two]).unwrap();
        batch.advance();
        assert_eq!(batch.offsets().collect::<Vec<_>>(), [2, 2]);
        assert!(batch.layer(0, 2).is_ok());
        assert!(batch.layer(1, 2).is_err());
    }
}
