//! [`Attention`]: grouped-query attention (<https://arxiv.org/abs/2305.13245>) with rotary positions and a cache.

use super::{Batch, Linear, Turn};
use crate::diagnostic::Diagnostic;
use crate::mlx::{self, Array, Mask, Result};
use crate::weights::WeightMap;

/// Head counts and widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionShape {
    /// Width of the residual stream.
    pub hidden: usize,
    /// Query heads; a multiple of `kv_heads`.
    pub heads: usize,
    /// Key/value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Whether the projections have a bias.
    pub bias: bool,
}

/// How far back a layer sees: so many positions, its own included; `None` is all.
pub type Window = Option<usize>;

/// `q_proj`, `k_proj`, `v_proj` (as one) and `o_proj` of one layer.
#[derive(Debug)]
pub struct Attention {
    query_key_value: Linear,
    output: Linear,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    scale: f32,
    layer: usize,
    window: Window,
}

impl Attention {
    /// Takes the four projections of `<module>`, which is that of layer number `layer`.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub fn new(
        weights: &mut WeightMap<'_>,
        module: &str,
        shape: AttentionShape,
        layer: usize,
        window: Window,
    ) -> Result<Self, Diagnostic> {
        let AttentionShape { hidden, heads, kv_heads, head_dim, bias } = shape;
        let (queries, keys) = (heads * head_dim, kv_heads * head_dim);
        let parts = [("q_proj", queries), ("k_proj", keys), ("v_proj", keys)];
        let int = |n: usize| mlx::int(n).map_err(|error| crate::weights::broken(&error));
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "head widths are small"
        )]
        let scale = (head_dim as f64).sqrt().recip() as f32;
        Ok(Self {
            query_key_value: Linear::stacked(weights, module, &parts, hidden, bias)?,
            output: Linear::new(weights, &format!("{module}.o_proj"), hidden, queries, bias)?,
            heads: int(heads)?,
            kv_heads: int(kv_heads)?,
            head_dim: int(head_dim)?,
            scale,
            layer,
            window,
        })
    }

    /// x `[B, T, hidden]` at the positions after those in the caches, whose rotation is `turn` → the same shape.
    pub(crate) fn forward(&self, x: &Array, turn: &Turn<'_>, caches: &mut Batch<'_>) -> Result<Array> {
        let (batch, count, width) = (x.dim(0), x.dim(1), self.head_dim);
        let (queries, rotated) = (self.heads, self.heads + self.kv_heads);
        let all = rotated + self.kv_heads;
        let projected = self.query_key_value.forward(x)?.reshape(&[batch, count, all, width])?;
        let projected = projected.transpose(&[0, 2, 1, 3])?;
        let heads = |of: &Array, from: i32, to: i32| of.slice(&[0, from, 0, 0], &[batch, to, count, width]);
        let turned = turn.apply(&heads(&projected, 0, rotated)?)?;
        let keys = heads(&turned, queries, rotated)?;
        let values = heads(&projected, rotated, all)?;

        let mixed = self.mix(&heads(&turned, 0, queries)?, &keys, &values, caches)?;
        let joined = mixed.transpose(&[0, 2, 1, 3])?.reshape(&[batch, count, queries * width])?;
        self.output.forward(&joined)
    }

    /// Queries `[B, heads, T, d]`, keys and values `[B, kv_heads, T, d]` → values as each query weighs those that its
    /// own sequence has seen: `[B, heads, T, d]`.
    fn mix(&self, queries: &Array, keys: &Array, values: &Array, caches: &mut Batch<'_>) -> Result<Array> {
        let count = caches.count();
        let visible = self.window.map_or(usize::MAX, |window| window + count - 1);
        let mut one = |row: usize, queries: &Array, keys: &Array, values: &Array| {
            let (keys, values) = caches.layer(row, self.layer)?.extend(keys, values, visible)?;
            let mask = mask(mlx::int(count)?, keys.dim(2), self.window)?;
            queries.attention(&keys, &values, self.scale, &mask)
        };
        let rows = queries.dim(0);
        if rows == 1 {
            return one(0, queries, keys, values);
        }
        let mut mixed = Vec::new();
        for (row, from) in (0..rows).enumerate() {
            let part = |of: &Array| of.slice(&[from, 0, 0, 0], &[from + 1, of.dim(1), of.dim(2), of.dim(3)]);
            mixed.push(one(row, &part(queries)?, &part(keys)?, &part(values)?)?);
        }
        Array::concatenate(&mixed.iter().collect::<Vec<_>>(), 0)
    }
}

/// Which of the last `keys` positions the last `queries` of them may see.
fn mask(queries: i32, keys: i32, window: Window) -> Result<Mask> {
    let window = window.and_then(|window| i32::try_from(window).ok()).filter(|&window| window < keys);
    match window {
        _ if queries == 1 => Ok(Mask::Full),
        None => Ok(Mask::Causal),
        Some(window) => {
            let query = Array::range(keys - queries, keys)?.reshape(&[queries, 1])?;
            let key = Array::range(0, keys)?.reshape(&[1, keys])?;
            let oldest = Array::range(keys - queries - window, keys - window)?.reshape(&[queries, 1])?;
            Ok(Mask::Allowed(key.less_or_equal(&query)?.and(&oldest.less(&key)?)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The allowed pairs as lines of `x` and `.`, one a query.
    fn drawn(mask: &Mask) -> String {
        let Mask::Allowed(allowed) = mask else { return format!("{mask:?}") };
        let width = usize::try_from(allowed.dim(1)).unwrap();
        let cells: Vec<char> =
            allowed.to_u32().unwrap().iter().map(|&cell| if cell == 1 { 'x' } else { '.' }).collect();
        cells.chunks(width).map(|line| line.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_window_counts_its_own_position() {
        assert_eq!(drawn(&mask(3, 5, Some(2)).unwrap()), ".xx.. ..xx. ...xx");
        assert_eq!(drawn(&mask(4, 4, Some(3)).unwrap()), "x... xx.. xxx. .xxx");
    }

    #[test]
    fn a_window_that_reaches_everything_is_none() {
        assert!(matches!(mask(3, 3, Some(3)).unwrap(), Mask::Causal));
        assert!(matches!(mask(3, 5, None).unwrap(), Mask::Causal));
        assert!(matches!(mask(1, 5, Some(2)).unwrap(), Mask::Full));
    }
}
