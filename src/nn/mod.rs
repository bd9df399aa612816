//! The parts that families are built of: projections, embeddings, norms, rotary positions, attention and its cache.
//!
//! Each part takes its tensors out of a [`WeightMap`](crate::weights::WeightMap) when it is built, with the shapes it
//! needs, and computes lazily. Batches are the leading axis everywhere: `[B, T, width]`. Nothing here knows a family.

mod attention;
mod batch;
mod cache;
mod embedding;
mod linear;
mod norm;
mod rope;

pub use attention::{Attention, AttentionShape, Window};
pub use batch::Batch;
pub use cache::{Cache, LayerCache};
pub use embedding::Embedding;
pub use linear::Linear;
pub use norm::RmsNorm;
pub use rope::{Rope, RopeSpec, Scaling, Turn};
