//! [`Attention`]: grouped-query attention (<https://arxiv.org/abs/2305.13245>) with rotary positions and a cache.

use super::mask::{Window, mask};
use super::{Batch, Linear, NormSpec, Rotation};
use crate::mlx::{self, Array, Device, Mask, Result};
use crate::weights::{WeightMap, WeightsError};

/// Head counts and widths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttentionShape {
    /// Width of the residual stream.
    pub hidden: usize,
    /// Query heads; a multiple of `kv_heads`.
    pub heads: usize,
    /// Key/value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
}

/// The attention of a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AttentionSpec {
    /// Head counts and widths.
    pub shape: AttentionShape,
    /// Whether queries, keys and values come from one `qkv_proj`.
    pub fused: bool,
    /// Whether the projections of queries, keys and values have a bias.
    pub bias: bool,
    /// Whether the output projection has a bias.
    pub output_bias: bool,
    /// How queries and keys are normalized before they are rotated.
    pub norm: HeadNorm,
    /// Factor of the scores (products of queries and keys).
    pub scale: f64,
    /// Soft cap of the scores: cap · tanh(x / cap).
    pub softcap: Option<f32>,
    /// Sliding window.
    pub window: Window,
}

/// How queries and keys are normalized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum HeadNorm {
    /// No normalization.
    None,
    /// Each head by itself.
    Each(NormSpec),
    /// All heads together.
    Whole(NormSpec),
}

/// The projections of one layer's attention.
#[derive(Debug)]
pub(crate) struct Attention {
    query_key_value: Linear,
    output: Linear,
    norm: NormWeights,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    scale: f32,
    softcap: Option<f32>,
    layer: usize,
    window: Window,
}

/// Norm weights of queries and keys.
#[derive(Debug)]
enum NormWeights {
    None,
    /// `[heads + kv_heads, 1, head_dim]`
    Each {
        weight: Array,
        eps: f32,
    },
    /// `[heads · head_dim]` and `[kv_heads · head_dim]`
    Whole {
        queries: Array,
        keys: Array,
        eps: f32,
    },
}

impl AttentionSpec {
    /// The attention of most families: no biases, no norms, scores divided by √`head_dim`, no window.
    #[must_use]
    pub(crate) fn plain(shape: AttentionShape) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "head widths are small")]
        let scale = (shape.head_dim as f64).sqrt().recip();
        Self {
            shape,
            fused: false,
            bias: false,
            output_bias: false,
            norm: HeadNorm::None,
            scale,
            softcap: None,
            window: None,
        }
    }
}

impl Attention {
    /// Takes the projections (and norms) of `<module>` in layer number `layer`.
    ///
    /// # Errors
    /// A tensor that is missing or does not fit.
    pub(crate) fn new(
        weights: &mut WeightMap<'_>,
        module: &str,
        layer: usize,
        spec: &AttentionSpec,
    ) -> Result<Self, WeightsError> {
        let AttentionShape { hidden, heads, kv_heads, head_dim } = spec.shape;
        let (queries, keys) = (heads * head_dim, kv_heads * head_dim);
        let query_key_value = if spec.fused {
            Linear::new(weights, &format!("{module}.qkv_proj"), queries + 2 * keys, hidden, spec.bias)?
        } else {
            let parts = [("q_proj", queries), ("k_proj", keys), ("v_proj", keys)];
            Linear::stacked(weights, module, &parts, hidden, spec.bias)?
        };
        let norm = NormWeights::new(weights, module, spec)?;
        let int = mlx::int;
        #[expect(clippy::cast_possible_truncation, reason = "computed in f32")]
        let scale = spec.scale as f32;
        Ok(Self {
            query_key_value,
            output: Linear::new(weights, &format!("{module}.o_proj"), hidden, queries, spec.output_bias)?,
            norm,
            heads: int(heads)?,
            kv_heads: int(kv_heads)?,
            head_dim: int(head_dim)?,
            scale,
            softcap: spec.softcap,
            layer,
            window: spec.window,
        })
    }

    /// x `[B, T, hidden]` at the positions after those in the caches → the same shape. `rotation` is that of these
    /// positions; without it nothing is rotated.
    pub(crate) fn forward(
        &self,
        x: &Array,
        rotation: Option<&Rotation<'_>>,
        caches: &mut Batch<'_>,
    ) -> Result<Array> {
        let (batch, count, width) = (x.dim(0), x.dim(1), self.head_dim);
        let (queries, rotated) = (self.heads, self.heads + self.kv_heads);
        let all = rotated + self.kv_heads;
        let projected = self.normalized_whole(self.query_key_value.forward(x)?)?;
        let projected = projected.reshape(&[batch, count, all, width])?.transpose(&[0, 2, 1, 3])?;
        let heads = |of: &Array, from: i32, to: i32| of.slice(&[0, from, 0, 0], &[batch, to, count, width]);
        let mut rotated_heads = heads(&projected, 0, rotated)?;
        if let NormWeights::Each { weight, eps } = &self.norm {
            rotated_heads = rotated_heads.rms_norm(None, *eps)?.multiply(weight)?;
        }
        if let Some(rotation) = rotation {
            rotated_heads = rotation.apply(&rotated_heads)?;
        }
        let keys = heads(&rotated_heads, queries, rotated)?;
        let values = heads(&projected, rotated, all)?;
        let mixed = self.mix(&heads(&rotated_heads, 0, queries)?, &keys, &values, caches)?;
        let joined = mixed.transpose(&[0, 2, 1, 3])?.reshape(&[batch, count, queries * width])?;
        self.output.forward(&joined)
    }

    /// Queries, keys and values side by side; normalizes queries and keys if all heads are normalized together.
    fn normalized_whole(&self, projected: Array) -> Result<Array> {
        let NormWeights::Whole { queries, keys, eps } = &self.norm else { return Ok(projected) };
        let (batch, count, width) = (projected.dim(0), projected.dim(1), projected.dim(2));
        let (first, second) = (queries.dim(0), queries.dim(0) + keys.dim(0));
        let part = |from: i32, to: i32| projected.slice(&[0, 0, from], &[batch, count, to]);
        let queries = part(0, first)?.rms_norm(Some(queries), *eps)?;
        let keys = part(first, second)?.rms_norm(Some(keys), *eps)?;
        Array::concatenate(&[&queries, &keys, &part(second, width)?], 2)
    }

    /// Queries `[B, heads, T, d]`, keys and values `[B, kv_heads, T, d]` → for each query, the weighted mean of the values
    /// of its own sequence: `[B, heads, T, d]`.
    fn mix(&self, queries: &Array, keys: &Array, values: &Array, caches: &mut Batch<'_>) -> Result<Array> {
        // MLX has no kernel with a soft cap, and on the CPU its attention is a dozen operations, which would dominate a
        // step of a batch.
        let by_parts = self.softcap.is_some() || (caches.count() == 1 && mlx::device() == Device::Cpu);
        let queries = if by_parts { &queries.scaled(self.scale)? } else { queries };
        let count = caches.count();
        let mut one = |row: usize, queries: &Array, keys: &Array, values: &Array| {
            let (keys, values) = caches.layer(row, self.layer)?.extend(keys, values, self.window)?;
            let mask = mask(mlx::int(count)?, keys.dim(2), self.window)?;
            if by_parts {
                return self.in_groups(queries, &keys, &values, &mask);
            }
            queries.attention(&keys, &values, self.scale, &mask)
        };
        let rows = queries.dim(0);
        if rows == 1 {
            return one(0, queries, keys, values);
        }
        let (queries, keys, values) = (queries.split(rows)?, keys.split(rows)?, values.split(rows)?);
        let mut mixed = Vec::new();
        for (row, ((queries, keys), values)) in queries.iter().zip(&keys).zip(&values).enumerate() {
            mixed.push(one(row, queries, keys, values)?);
        }
        Array::concatenate(&mixed.iter().collect::<Vec<_>>(), 0)
    }

    /// Attention of one sequence whose queries are scaled already: heads that share keys are one product.
    fn in_groups(&self, queries: &Array, keys: &Array, values: &Array, mask: &Mask) -> Result<Array> {
        let (count, width, groups) = (queries.dim(2), self.head_dim, self.heads / self.kv_heads);
        let queries = queries.reshape(&[1, self.kv_heads, groups * count, width])?;
        let mut products = queries.matmul(&keys.transpose(&[0, 1, 3, 2])?)?;
        if let Some(cap) = self.softcap {
            products = products.scaled(cap.recip())?.tanh()?.scaled(cap)?;
        }
        if let Some(allowed) = mask.allowed(count, keys.dim(2))? {
            let shape = products.shape().to_vec();
            let hidden = Array::scalar(f32::NEG_INFINITY).cast(products.dtype())?;
            let apart = products.reshape(&[self.kv_heads, groups, count, keys.dim(2)])?;
            products = apart.or_where_not(&allowed, &hidden)?.reshape(&shape)?;
        }
        products.softmax()?.matmul(values)?.reshape(&[1, self.heads, count, width])
    }
}

impl NormWeights {
    fn new(weights: &mut WeightMap<'_>, module: &str, spec: &AttentionSpec) -> Result<Self, WeightsError> {
        let AttentionShape { heads, kv_heads, head_dim, .. } = spec.shape;
        let mut both = |norm: NormSpec, queries, keys| {
            let queries = norm.weight(weights, &format!("{module}.q_norm"), queries)?;
            Ok::<_, WeightsError>((queries, norm.weight(weights, &format!("{module}.k_norm"), keys)?))
        };
        match spec.norm {
            HeadNorm::None => Ok(Self::None),
            HeadNorm::Whole(norm) => {
                let (queries, keys) = both(norm, heads * head_dim, kv_heads * head_dim)?;
                Ok(Self::Whole { queries, keys, eps: norm.eps })
            }
            HeadNorm::Each(norm) => {
                let (queries, keys) = both(norm, head_dim, head_dim)?;
                let rows: Vec<&Array> = std::iter::repeat_n(&queries, heads)
                    .chain(std::iter::repeat_n(&keys, kv_heads))
                    .collect();
                let weight = mlx::int(head_dim)
                    .and_then(|width| Array::concatenate(&rows, 0)?.reshape(&[-1, 1, width]))?;
                weights.settle(&[&weight], 0)?;
                Ok(Self::Each { weight, eps: norm.eps })
            }
        }
    }
}
