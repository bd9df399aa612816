//! "Did you mean …?"

use super::fields::Op;
use crate::diagnostic::normalized;

/// What an operation of another tool, or of another habit, is here, and how it is written.
pub(super) fn operation(word: &str) -> Option<(Op, &'static str)> {
    Some(match normalized(word).as_str() {
        "slerp" => (Op::Interpolate, "write `op: interpolate` with `method: slerp`"),
        "lerp" | "linear" | "merge" | "average" | "blend" | "mix" => {
            (Op::Interpolate, "write `op: interpolate` with `method: lerp`")
        }
        "task_arithmetic" | "task_vector" | "delta" | "sum" | "subtract" | "sub" => {
            (Op::Add, "write `op: add`; a negative `alpha` subtracts")
        }
        "ablate" | "zero" | "remove" | "delete" | "drop" | "mask" | "skip" | "disable" => {
            (Op::Prune, "write `op: prune` with a `granularity`, or `op: scale` with `factor: 0`")
        }
        "multiply" | "mul" | "amplify" | "weight" => (Op::Scale, "write `op: scale` with a `factor`"),
        "copy" | "swap" | "set" | "graft" | "transplant" | "passthrough" => {
            (Op::Replace, "write `op: replace`")
        }
        _ => return None,
    })
}

/// The field that a word of another tool, or of another habit, stands for: the first that the operation has.
pub(super) fn field<'w>(word: &str, has: &[&'w str]) -> Option<&'w str> {
    let meant: &[&str] = match normalized(word).as_str() {
        "t" | "weight" | "strength" | "lambda" | "amount" | "value" | "coefficient" | "scaling" | "scale"
        | "multiplier" | "by" => &["factor", "alpha", "ratio"],
        "target" | "targets" | "keys" | "key" | "tensors" | "tensor" | "filter" | "match" | "glob"
        | "regex" | "module" | "modules" => &["pattern"],
        "type" | "operation" | "action" => &["op"],
        "donor" | "donors" | "from" | "model" | "models" | "sources" | "file" | "path" | "delta"
        | "task_vector" => &["source", "source_a"],
        "a" | "model_a" | "base_model" => &["source_a"],
        "b" | "model_b" => &["source_b"],
        "heads" | "head" => &["head_ids"],
        "layers" | "layer" => &["layer_ids"],
        "channels" | "channel" | "neurons" => &["channel_ids"],
        "ids" | "indices" | "index" => &["head_ids", "layer_ids", "channel_ids"],
        "mode" | "merge_method" | "kind" => &["method", "granularity"],
        "skip" | "except" | "ignore" | "without" | "exclusions" => &["exclude"],
        "label" | "title" | "comment" | "description" => &["name"],
        _ => return None,
    };
    meant.iter().find_map(|name| has.iter().copied().find(|has| has == name))
}

/// The word of a list that another one stands for.
pub(super) fn word<'w>(word: &str, mut words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let meant = match normalized(word).as_str() {
        "linear" | "average" | "mean" | "weighted" => "lerp",
        "spherical" => "slerp",
        "block" | "blocks" | "depth" => "layer",
        "neuron" | "neurons" | "intermediate" | "mlp" | "ffn" => "mlp_channel",
        _ => return None,
    };
    words.find(|word| *word == meant)
}
