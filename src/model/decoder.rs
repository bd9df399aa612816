//! [`Decoder`]: an embedding, blocks and a head. Every family is one; families differ in their blocks.

use super::sizes::Sizes;
use super::{Model, ModelError};
use crate::mlx::{self, Array, Device, Dtype, async_eval};
use crate::nn::{
    Attention, AttentionSpec, Batch, Cache, Embedding, Experts, ExpertsShape, Linear, Mlp, MlpShape,
    NormSpec, RmsNorm, Rope, RopeSpec, Rotation,
};
use crate::weights::{WeightMap, WeightsError};

/// One layer: x + attention(x), then x + feed-forward(x), each with a norm before or after it, or both.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) attention: Attention,
    /// Index of the rotation of its queries and keys among the model's; `None` does not rotate.
    pub(super) rope: Option<usize>,
    pub(super) feed_forward: FeedForward,
    pub(super) attention_norms: Around,
    pub(super) feed_forward_norms: Around,
}

/// The norms before and after a part of a block.
#[derive(Debug)]
pub(super) struct Around {
    pub(super) before: Option<RmsNorm>,
    pub(super) after: Option<RmsNorm>,
}

/// The part of a block after attention.
#[derive(Debug)]
pub(super) enum FeedForward {
    Dense(Mlp),
    Experts(Experts),
}

/// Factors of a family; `None` is 1.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Multipliers {
    pub(super) embedding: Option<f32>,
    pub(super) residual: Option<f32>,
    /// Whether an f16 residual stream is clipped to the range of f16.
    pub(super) bounded: bool,
    pub(super) logits: Option<f32>,
    /// Soft cap of the logits: cap · tanh(x / cap).
    pub(super) logits_softcap: Option<f32>,
}

/// The model.
#[derive(Debug)]
pub(super) struct Decoder {
    sizes: Sizes,
    multipliers: Multipliers,
    embedding: Embedding,
    ropes: Vec<Rope>,
    blocks: Vec<Block>,
    norm: RmsNorm,
    head: Linear,
}

impl Around {
    /// The part's contribution to the residual stream x.
    fn apply(&self, x: &Array, inside: impl FnOnce(&Array) -> mlx::Result<Array>) -> mlx::Result<Array> {
        let y = match &self.before {
            Some(norm) => inside(&norm.forward(x)?)?,
            None => inside(x)?,
        };
        match &self.after {
            Some(norm) => norm.forward(&y),
            None => Ok(y),
        }
    }
}

impl FeedForward {
    fn forward(&self, x: &Array) -> mlx::Result<Array> {
        match self {
            Self::Dense(mlp) => mlp.forward(x),
            Self::Experts(experts) => experts.forward(x),
        }
    }
}

impl Block {
    fn forward(
        &self,
        x: &Array,
        rotations: &[Rotation<'_>],
        batch: &mut Batch<'_>,
        multipliers: &Multipliers,
    ) -> mlx::Result<Array> {
        let rotation = self.rope.and_then(|rope| rotations.get(rope));
        let y = self.attention_norms.apply(x, |x| self.attention.forward(x, rotation, batch))?;
        let x = multipliers.join(x, y)?;
        let y = self.feed_forward_norms.apply(&x, |x| self.feed_forward.forward(x))?;
        multipliers.join(&x, y)
    }
}

impl Multipliers {
    /// Adds the contribution y of a part to the residual stream x.
    fn join(&self, x: &Array, y: Array) -> mlx::Result<Array> {
        let y = scaled(y, self.residual)?;
        if self.bounded && x.dtype() == Dtype::Float16 {
            let sum = x.cast(Dtype::Float32)?.add(&y.cast(Dtype::Float32)?)?;
            return sum.clipped(half::f16::MAX.to_f32_const())?.cast(Dtype::Float16);
        }
        x.add(&y)
    }
}

/// A layer under construction, which takes its parts by their names.
pub(super) struct Layer<'l, 'p> {
    weights: &'l mut WeightMap<'p>,
    /// Layer number, from 0.
    pub(super) number: usize,
    module: String,
    hidden: usize,
    norm: NormSpec,
}

impl Layer<'_, '_> {
    /// This layer's entry in a list for all layers.
    pub(super) fn of<T: Copy + Default>(&self, layers: &[T]) -> T {
        layers.get(self.number).copied().unwrap_or_default()
    }

    /// `self_attn`.
    pub(super) fn attention(&mut self, spec: &AttentionSpec) -> Result<Attention, WeightsError> {
        Attention::new(self.weights, &format!("{}.self_attn", self.module), self.number, spec)
    }

    /// `mlp`, with separate gate and up projections.
    pub(super) fn mlp(&mut self, shape: MlpShape) -> Result<FeedForward, WeightsError> {
        Ok(FeedForward::Dense(Mlp::new(self.weights, &format!("{}.mlp", self.module), shape)?))
    }

    /// `mlp`, with gate and up projection in one tensor.
    pub(super) fn fused_mlp(&mut self, shape: MlpShape) -> Result<FeedForward, WeightsError> {
        Ok(FeedForward::Dense(Mlp::fused(self.weights, &format!("{}.mlp", self.module), shape)?))
    }

    /// The mixture of experts with this name.
    pub(super) fn experts(&mut self, name: &str, shape: ExpertsShape) -> Result<FeedForward, WeightsError> {
        Ok(FeedForward::Experts(Experts::new(self.weights, &format!("{}.{name}", self.module), shape)?))
    }

    /// The norms with these names.
    pub(super) fn norms(
        &mut self,
        before: Option<&str>,
        after: Option<&str>,
    ) -> Result<Around, WeightsError> {
        let mut norm = |name: Option<&str>| {
            let module = name.map(|name| format!("{}.{name}", self.module));
            module.map(|module| RmsNorm::new(self.weights, &module, self.hidden, self.norm)).transpose()
        };
        Ok(Around { before: norm(before)?, after: norm(after)? })
    }

    /// The block of most families: a norm before attention and one before the feed-forward network.
    pub(super) fn pre_norm_block(
        &mut self,
        rope: Option<usize>,
        attention: &AttentionSpec,
        feed_forward: impl FnOnce(&mut Self) -> Result<FeedForward, WeightsError>,
    ) -> Result<Block, WeightsError> {
        Ok(Block {
            rope,
            attention_norms: self.norms(Some("input_layernorm"), None)?,
            attention: self.attention(attention)?,
            feed_forward_norms: self.norms(Some("post_attention_layernorm"), None)?,
            feed_forward: feed_forward(self)?,
        })
    }
}

impl Decoder {
    /// Takes the embedding `model.embed_tokens`, the blocks as `block` makes them, `model.norm` and `lm_head`.
    pub(super) fn build(
        weights: &mut WeightMap<'_>,
        sizes: Sizes,
        ropes: &[RopeSpec],
        norm: NormSpec,
        multipliers: Multipliers,
        block: impl Fn(&mut Layer<'_, '_>) -> Result<Block, WeightsError>,
    ) -> Result<Box<dyn Model>, ModelError> {
        let (hidden, vocabulary) = (sizes.attention.hidden, sizes.vocabulary);
        let ropes = ropes.iter().map(Rope::new).collect::<mlx::Result<_>>().map_err(WeightsError::from)?;
        let embedding = Embedding::new(weights, "model.embed_tokens", vocabulary, hidden)?;
        let mut blocks = Vec::new();
        for number in 0..sizes.layers {
            let module = format!("model.layers.{number}");
            blocks.push(block(&mut Layer { weights: &mut *weights, number, module, hidden, norm })?);
        }
        let norm = RmsNorm::new(weights, "model.norm", hidden, norm)?;
        let head = Linear::new(weights, "lm_head", vocabulary, hidden, false)?;
        Ok(Box::new(Self { sizes, multipliers, embedding, ropes, blocks, norm, head }))
    }
}

impl Model for Decoder {
    fn vocabulary(&self) -> usize {
        self.sizes.vocabulary
    }

    fn context(&self) -> Option<usize> {
        self.sizes.context
    }

    fn cache(&self) -> Cache {
        let original_max_positions = self.ropes.iter().find_map(Rope::original_max_positions);
        Cache::new(self.blocks.len()).with_original_max_positions(original_max_positions)
    }

    fn hidden(&self, tokens: &Array, batch: &mut Batch<'_>) -> mlx::Result<Array> {
        let rotations =
            self.ropes.iter().map(|rope| rope.rotation(batch)).collect::<mlx::Result<Vec<_>>>()?;
        let mut x = scaled(self.embedding.forward(tokens)?, self.multipliers.embedding)?;
        let on_cpu = mlx::device() == Device::Cpu;
        for block in &self.blocks {
            x = block.forward(&x, &rotations, batch, &self.multipliers)?;
            // For one token on the CPU, MLX takes about as long to build a block's graph as to compute it, so each block is
            // computed while the next is built.
            if on_cpu {
                async_eval([&x])?;
            }
        }
        Ok(x)
    }

    fn logits(&self, hidden: &Array) -> mlx::Result<Array> {
        let logits = self.head.forward(&self.norm.forward(hidden)?)?;
        let logits = scaled(logits, self.multipliers.logits)?;
        match self.multipliers.logits_softcap {
            None => Ok(logits),
            Some(cap) => logits.scaled(cap.recip())?.tanh()?.scaled(cap),
        }
    }
}

fn scaled(x: Array, factor: Option<f32>) -> mlx::Result<Array> {
    match factor {
        None => Ok(x),
        Some(factor) => x.scaled(factor),
    }
}
