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

pub use attention::{Attention, AttentionShape, AttentionSpec, HeadNorm};
pub use batch::Batch;
pub use cache::{Cache, LayerCache};
pub use embedding::Embedding;
pub use experts::{Experts, ExpertsShape};
pub use linear::Linear;
pub use mask::Window;
pub use mlp::{Activation, Mlp, MlpShape};
pub use norm::{NormSpec, RmsNorm};
pub use rope::{Rope, Rotation};
pub use scaling::{RopeSpec, Scaling};
