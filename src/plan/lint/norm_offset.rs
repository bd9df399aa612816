//! Norm weights that a family uses as 1 + w.

use crate::checkpoint::{Checkpoint, Key, Role, is_other_tower};
use crate::diagnostic::{Code, Diagnostic, words};
use crate::plan::planned_operation::PlannedOperation;
use crate::surgery::Operation;

/// A note that scaling (or slerping) w does not scale 1 + w.
pub(super) fn note(
    base: &Checkpoint,
    operation: &Operation,
    planned: &PlannedOperation,
) -> Option<Diagnostic> {
    let family = base.config.text_model_type();
    if !operation.kind.depends_on_offset()
        || !base.config.family().adds_one_to_norms(base.weights.format.as_deref())
    {
        return None;
    }
    let keys = planned.targets.iter().map(|&target| &base.weights.index[target].0);
    let norms: Vec<&str> = keys.filter(|key| is_norm(key)).map(Key::as_str).collect();
    if norms.is_empty() {
        return None;
    }
    let op = operation.op.value;
    let message =
        format!("`{family}` uses a norm weight w as 1 + w; `{op}` changes w: {}", words::names(&norms));
    let diagnostic = Diagnostic::new(Code::GemmaNormOffset, message)
        .help("to change the gain itself, `exclude` the norms here and `add` a task vector for them");
    Some(operation.pattern.label_at_use(diagnostic, ""))
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
}
