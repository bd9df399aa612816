//! The keys the loader will see: a tied `lm_head` restored, by headers only.

use super::{ModelConfig, TensorIndex};

/// Adds `lm_head.*` with [`Origin::Tied`](super::Origin::Tied) where a text model ties it and does not store it.
#[must_use]
pub fn sanitize(index: TensorIndex, config: &ModelConfig) -> TensorIndex {
    todo!()
}
