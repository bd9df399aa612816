//! Norm weights that a family uses as 1 + w.

use super::draft::{Context, Draft};
use crate::checkpoint::{Key, Role, is_other_tower};
use crate::diagnostic::{Code, Diagnostic, words};
use crate::surgery::Operation;

/// Advises that scaling (or slerping) w is not scaling 1 + w.
pub(super) fn offset(context: &Context<'_>, operation: &Operation, targets: &[usize], draft: &mut Draft) {
    let family = context.config().text_model_type();
    if !adds_one(family, context.base.weights.format.as_deref()) {
        return;
    }
    let keys = targets.iter().map(|&target| context.entry(target).0);
    let norms: Vec<&str> = keys.filter(|key| is_norm(key)).map(Key::as_str).collect();
    if norms.is_empty() {
        return;
    }
    let op = operation.op.value;
    let message =
        format!("`{family}` uses a norm weight w as 1 + w, and `{op}` works on w: {}", words::names(&norms));
    let diagnostic = Diagnostic::new(Code::GemmaNormOffset, message)
        .help("to change the gain itself, `exclude` the norms here and `add` a task vector for them");
    draft.say(operation.pattern.label_at_use(diagnostic, ""));
}

/// Families whose stored norm weight is an offset from 1. Conversions to MLX of the Qwen hybrids store 1 + w itself.
fn adds_one(family: &str, format: Option<&str>) -> bool {
    match family {
        "gemma" | "gemma2" | "gemma3" | "gemma3_text" | "paligemma" | "recurrent_gemma" => true,
        "qwen3_next" | "qwen3_next_text" | "qwen3_5" | "qwen3_5_text" | "qwen3_5_moe"
        | "qwen3_5_moe_text" => format == Some("pt"),
        _ => false,
    }
}

fn is_norm(key: &Key) -> bool {
    key.suffix() == "weight" && matches!(Role::of(key), Role::Norm | Role::QueryNorm) && !is_other_tower(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_norm_weights_of_the_text_model_are_meant() {
        let norm = |key| is_norm(&Key::from(key));
        assert!(norm("model.layers.0.input_layernorm.weight"));
        assert!(norm("model.layers.0.self_attn.q_norm.weight"));
        assert!(norm("model.norm.weight"));
        assert!(!norm("model.layers.0.mlp.up_proj.weight"));
        assert!(!norm("vision_tower.post_layernorm.weight"));
    }

    #[test]
    fn converted_qwen_hybrids_have_plain_norms() {
        assert!(adds_one("qwen3_next", Some("pt")));
        assert!(!adds_one("qwen3_next", Some("mlx")));
        assert!(adds_one("gemma2", None));
        assert!(!adds_one("llama", None));
    }
}
