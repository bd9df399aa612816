//! The names that a vision-language checkpoint's tensors have in its text model. Tensors take them after surgery, so
//! that patterns see the stored names.

use std::borrow::Cow;

use super::{Key, ModelConfig, is_other_tower};

/// Prefixes of the text model, and what takes their place: as first published and as MLX's converter writes them, as
/// newer writers do, and as `SmolVLM` and Idefics 3 have it.
const PREFIXES: [(&str, &str); 4] = [
    ("language_model.model.", "model."),
    ("language_model.lm_head.", "lm_head."),
    ("model.language_model.", "model."),
    ("model.text_model.", "model."),
];

impl ModelConfig {
    /// The name that a tensor has in the text model; `None` for one of another tower. Only vision-language
    /// checkpoints use other names.
    #[must_use]
    pub fn text_key<'k>(&self, key: &'k Key) -> Option<Cow<'k, str>> {
        let name = key.as_str();
        if !self.is_vision_language {
            return Some(Cow::Borrowed(name));
        }
        if is_other_tower(key) {
            return None;
        }
        let renamed =
            PREFIXES.iter().find_map(|(from, to)| Some(format!("{to}{}", name.strip_prefix(from)?)));
        Some(renamed.map_or(Cow::Borrowed(name), Cow::Owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(is_vision_language: bool, key: &str, wanted: Option<&str>) {
        let config = ModelConfig { is_vision_language, ..ModelConfig::default() };
        assert_eq!(config.text_key(&Key::from(key)).as_deref(), wanted, "{key}");
    }

    #[test]
    fn every_layout_leads_to_the_names_of_the_text_model() {
        for key in [
            "language_model.model.layers.0.mlp.up_proj.weight",
            "model.language_model.layers.0.mlp.up_proj.weight",
            "model.text_model.layers.0.mlp.up_proj.weight",
            "model.layers.0.mlp.up_proj.weight",
        ] {
            check(true, key, Some("model.layers.0.mlp.up_proj.weight"));
        }
        check(true, "language_model.lm_head.weight", Some("lm_head.weight"));
        check(true, "lm_head.weight", Some("lm_head.weight"));
    }

    #[test]
    fn other_towers_are_left_out() {
        for key in [
            "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight",
            "visual.blocks.0.attn.qkv.weight",
            "model.visual.merger.ln_q.weight",
            "model.multi_modal_projector.linear_1.weight",
        ] {
            check(true, key, None);
        }
    }

    #[test]
    fn a_text_checkpoint_keeps_its_names() {
        for key in ["model.norm.weight", "language_model.model.norm.weight", "visual.x.weight"] {
            check(false, key, Some(key));
        }
    }
}
