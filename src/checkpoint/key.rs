//! [`Key`]: a tensor's dotted name.

use std::borrow::Borrow;
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
        let mut word_start = 0;
        let mut word = "";
        // Ends of components; the number's must be followed by another component.
        for (dot, _) in self.0.match_indices('.') {
            let component = &self.0[word_start..dot];
            if matches!(word, "layers" | "h" | "blocks" | "block")
                && is_number(component)
                && let Ok(number) = component.parse()
            {
                return Some((&self.0[..word_start - 1], number));
            }
            word = component;
            word_start = dot + 1;
        }
        None
    }

    /// Everything before the last dot: the module. Empty when there is no dot.
    #[must_use]
    pub fn stem(&self) -> &str {
        self.0.rsplit_once('.').map_or("", |(stem, _)| stem)
    }

    /// The last component: `weight`, `scales`, `biases`, `bias`.
    #[must_use]
    pub fn suffix(&self) -> &str {
        self.0.rsplit_once('.').map_or(&self.0, |(_, suffix)| suffix)
    }
}

fn is_number(component: &str) -> bool {
    !component.is_empty() && component.bytes().all(|byte| byte.is_ascii_digit())
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[track_caller]
    fn check(name: &str, layer: Option<(&str, u64)>, stem: &str, suffix: &str) {
        let key = Key::from(name);
        assert_eq!((key.layer(), key.stem(), key.suffix()), (layer, stem, suffix), "{name}");
    }

    #[test]
    fn a_key_knows_its_layer_module_and_member() {
        check(
            "model.layers.3.mlp.up_proj.weight",
            Some(("model.layers", 3)),
            "model.layers.3.mlp.up_proj",
            "weight",
        );
        check("h.0.attn.c_attn.bias", Some(("h", 0)), "h.0.attn.c_attn", "bias");
        check(
            "visual.blocks.31.norm1.weight",
            Some(("visual.blocks", 31)),
            "visual.blocks.31.norm1",
            "weight",
        );
        check("encoder.block.2.layer.0.w", Some(("encoder.block", 2)), "encoder.block.2.layer.0", "w");
        check("norm", None, "", "norm");
        check("", None, "", "");
    }

    #[test]
    fn the_leftmost_stack_counts() {
        check("a.layers.1.b.layers.2.w", Some(("a.layers", 1)), "a.layers.1.b.layers.2", "w");
        check("layers.x.h.7.w", Some(("layers.x.h", 7)), "layers.x.h.7", "w");
    }

    #[test]
    fn words_and_numbers_are_whole_components() {
        check("model.sublayers.3.w", None, "model.sublayers.3", "w");
        check("model.layers.3", None, "model.layers", "3");
        check("model.layers.3a.w", None, "model.layers.3a", "w");
        check("model.layers.-3.w", None, "model.layers.-3", "w");
        check("model.layers..w", None, "model.layers.", "w");
        check("model.layers.99999999999999999999.w", None, "model.layers.99999999999999999999", "w");
    }
}
