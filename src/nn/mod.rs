//! The parts of models: projections, embeddings, norms, rotary positions, attention and its cache.
//!
//! Each part takes its tensors out of a [`WeightMap`](crate::weights::WeightMap) when it is built, with the shapes it
//! needs, and computes lazily. The batch is the leading axis everywhere: `[B, T, width]`. Nothing here knows a family.

mod attention;
mod batch;
mod cache;
mod embedding;
mod experts;
mod linear;
mod mask;
mod mlp;
mod norm;
mod rope;
mod scaling;

pub(crate) use attention::{Attention, AttentionShape, AttentionSpec, HeadNorm};
pub(crate) use batch::Batch;
pub(crate) use cache::{Cache, LayerCache};
pub(crate) use embedding::Embedding;
pub(crate) use experts::{Experts, ExpertsShape};
pub(crate) use linear::Linear;
pub(crate) use mask::Window;
pub(crate) use mlp::{Activation, Mlp, MlpShape};
pub(crate) use norm::{NormSpec, RmsNorm};
pub(crate) use rope::{Rope, Rotation};
pub(crate) use scaling::{RopeSpec, Scaling};
