//! [`Key`]: a tensor's dotted name.

use std::fmt;
use std::sync::Arc;

/// A tensor's dotted name, such as `model.layers.3.self_attn.q_proj.weight`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The stack it belongs to and its layer number: the prefix before the leftmost `layers.N.`, `h.N.`, `blocks.N.`
    /// or `block.N.`, including that word (`model.layers`, `vision_tower.blocks`).
    #[must_use]
    pub fn layer(&self) -> Option<(&str, u64)> {
        todo!()
    }

    /// Everything before the last dot: the module.
    #[must_use]
    pub fn stem(&self) -> &str {
        todo!()
    }

    /// The last component: `weight`, `scales`, `biases`, `bias`.
    #[must_use]
    pub fn suffix(&self) -> &str {
        todo!()
    }
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
