//! [`Role`]: the part of a transformer block that a key belongs to.

use super::Key;

/// The part of a transformer block that a module is, according to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Query projection.
    Query,
    /// Key projection.
    KeyProjection,
    /// Value projection.
    Value,
    /// q|k|v in one matrix.
    FusedQkv,
    /// Attention output projection.
    Output,
    /// Norm on queries or keys.
    QueryNorm,
    /// MLP gate (mixtral `w1`).
    Gate,
    /// MLP up (mixtral `w3`).
    Up,
    /// gate|up in one matrix.
    FusedGateUp,
    /// MLP down (mixtral `w2`).
    Down,
    /// Any norm.
    Norm,
    /// Token embedding.
    Embedding,
    /// Language-model head.
    Head,
    /// Mixture-of-experts router.
    Router,
    /// Anything else.
    Other,
}

/// Path components below which nothing belongs to the text model.
const OTHER_TOWERS: &[&str] = &[
    "vision_tower",
    "vision_model",
    "vision_encoder",
    "vision_embed_tokens",
    "visual",
    "vit",
    "multi_modal_projector",
    "mm_projector",
    "vision_projection",
    "connector",
    "audio_tower",
    "audio_model",
    "audio_encoder",
    "embed_vision",
    "embed_audio",
    "talker",
    "code2wav",
    "token2wav",
    "mtp",
];

impl Role {
    /// The role of the module that a key belongs to.
    #[must_use]
    pub(crate) fn of(key: &Key) -> Self {
        let (module, suffix) = (key.stem(), key.suffix());
        let (parent, name) = module.rsplit_once('.').unwrap_or(("", module));
        match Self::named(name, last(parent)) {
            // Stacked experts are parameters without their own module: `experts.down_proj`.
            Self::Other if matches!(name, "experts" | "switch_mlp") => {
                let bare =
                    ["_bias", "_blocks", "_scales"].iter().find_map(|ending| suffix.strip_suffix(ending));
                Self::named(bare.unwrap_or(suffix), name)
            }
            role => role,
        }
    }

    fn named(name: &str, parent: &str) -> Self {
        match name {
            "q_proj" => Self::Query,
            "k_proj" => Self::KeyProjection,
            "v_proj" => Self::Value,
            "qkv_proj" => Self::FusedQkv,
            "o_proj" => Self::Output,
            "q_norm" | "k_norm" | "q_layernorm" | "k_layernorm" | "query_layernorm" | "key_layernorm" => {
                Self::QueryNorm
            }
            "gate_proj" | "w1" => Self::Gate,
            "up_proj" | "w3" => Self::Up,
            "gate_up_proj" => Self::FusedGateUp,
            "down_proj" | "w2" => Self::Down,
            "embed_tokens" | "wte" | "word_embeddings" | "tok_embeddings" => Self::Embedding,
            "lm_head" => Self::Head,
            "router" | "shared_expert_gate" => Self::Router,
            "gate" if matches!(parent, "mlp" | "block_sparse_moe" | "feed_forward") => Self::Router,
            "ln_1" | "ln_2" | "ln_f" => Self::Norm,
            _ if name.ends_with("norm") => Self::Norm,
            _ => Self::Other,
        }
    }
}

/// Whether a key belongs to a tower other than the text model: vision, audio, projectors, multi-token prediction.
#[must_use]
pub(crate) fn is_other_tower(key: &Key) -> bool {
    key.as_str().split('.').any(|component| OTHER_TOWERS.contains(&component))
}

fn last(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::{Key, Role, is_other_tower};

    #[track_caller]
    fn check(key: &str, role: Role) {
        assert_eq!(Role::of(&Key::from(key)), role, "{key}");
    }

    #[test]
    fn projections_are_known_by_their_module_whichever_member_is_asked() {
        for member in ["weight", "bias", "scales", "biases"] {
            check(&format!("model.layers.0.self_attn.q_proj.{member}"), Role::Query);
            check(&format!("model.layers.0.mlp.down_proj.{member}"), Role::Down);
        }
        check("model.layers.0.self_attn.qkv_proj.weight", Role::FusedQkv);
        check("model.layers.0.self_attn.o_proj.weight", Role::Output);
        check("model.layers.0.mlp.gate_up_proj.weight", Role::FusedGateUp);
        check("model.embed_tokens.scales", Role::Embedding);
        check("lm_head.weight", Role::Head);
    }

    #[test]
    fn norms_are_told_from_norms_on_queries() {
        check("model.layers.0.self_attn.q_norm.weight", Role::QueryNorm);
        check("model.layers.0.post_attention_layernorm.weight", Role::Norm);
        check("model.norm.weight", Role::Norm);
    }

    #[test]
    fn a_gate_is_a_router_or_a_projection() {
        check("model.layers.0.mlp.gate.weight", Role::Router);
        check("model.layers.0.block_sparse_moe.gate.weight", Role::Router);
        check("model.layers.0.mlp.gate_proj.weight", Role::Gate);
        check("model.layers.0.mlp.experts.7.gate_proj.weight", Role::Gate);
        check("model.layers.0.mlp.shared_expert_gate.weight", Role::Router);
    }

    #[test]
    fn experts_have_roles_in_every_spelling() {
        check("model.layers.0.block_sparse_moe.experts.3.w1.weight", Role::Gate);
        check("model.layers.0.block_sparse_moe.experts.3.w2.weight", Role::Down);
        check("model.layers.0.block_sparse_moe.experts.3.w3.weight", Role::Up);
        check("model.layers.0.mlp.switch_mlp.down_proj.scales", Role::Down);
        check("model.layers.0.mlp.experts.down_proj", Role::Down);
        check("model.layers.0.mlp.experts.gate_up_proj_blocks", Role::FusedGateUp);
    }

    #[test]
    fn unknown_layouts_have_no_role() {
        check("model.layers.0.self_attn.q_a_proj.weight", Role::Other);
        check("transformer.h.0.attn.c_attn.weight", Role::Other);
        check("visual.blocks.0.attn.qkv.weight", Role::Other);
        check("weight", Role::Other);
    }

    #[test]
    fn towers_are_whole_components() {
        for key in
            ["vision_tower.x.w", "model.visual.blocks.0.w", "mtp.layers.0.w", "a.multi_modal_projector.w"]
        {
            assert!(is_other_tower(&Key::from(key)), "{key}");
        }
        for key in ["model.layers.0.w", "language_model.model.norm.weight", "visually.w"] {
            assert!(!is_other_tower(&Key::from(key)), "{key}");
        }
    }
}
