//! Words of other tools and their equivalents here.

use super::super::language::{Field, Granularity, Method, OpName};
use crate::diagnostic::normalized;

/// The operation that a word of another tool means, and how to write it.
pub(super) fn operation(word: &str) -> Option<(OpName, &'static str)> {
    Some(match normalized(word).as_str() {
        "slerp" => (OpName::Interpolate, "write `op: interpolate` with `method: slerp`"),
        "lerp" | "linear" | "merge" | "average" | "blend" | "mix" => {
            (OpName::Interpolate, "write `op: interpolate` with `method: lerp`")
        }
        "task_arithmetic" | "task_vector" | "delta" | "sum" | "subtract" | "sub" => {
            (OpName::Add, "write `op: add`; a negative `alpha` subtracts")
        }
        "ablate" | "zero" | "remove" | "delete" | "drop" | "mask" | "skip" | "disable" => {
            (OpName::Prune, "write `op: prune` with a `granularity`, or `op: scale` with `factor: 0`")
        }
        "multiply" | "mul" | "amplify" | "weight" => (OpName::Scale, "write `op: scale` with a `factor`"),
        "copy" | "swap" | "set" | "graft" | "transplant" | "passthrough" => {
            (OpName::Replace, "write `op: replace`")
        }
        _ => return None,
    })
}

/// The field that a word of another tool means: the first of its meanings among the candidates.
pub(super) fn field(word: &str, candidates: &[Field]) -> Option<Field> {
    let meanings: &[Field] = match normalized(word).as_str() {
        "t" | "weight" | "strength" | "lambda" | "amount" | "value" | "coefficient" | "scaling" | "scale"
        | "multiplier" | "by" => &[Field::Factor, Field::Alpha, Field::Ratio],
        "target" | "targets" | "keys" | "key" | "tensors" | "tensor" | "filter" | "match" | "glob"
        | "regex" | "module" | "modules" => &[Field::Pattern],
        "type" | "operation" | "action" => &[Field::Op],
        "donor" | "donors" | "from" | "model" | "models" | "sources" | "file" | "path" | "delta"
        | "task_vector" => &[Field::Source, Field::SourceA],
        "a" | "model_a" | "base_model" => &[Field::SourceA],
        "b" | "model_b" => &[Field::SourceB],
        "heads" | "head" => &[Field::HeadIds],
        "layers" | "layer" => &[Field::LayerIds],
        "channels" | "channel" | "neurons" => &[Field::ChannelIds],
        "ids" | "indices" | "index" => &[Field::HeadIds, Field::LayerIds, Field::ChannelIds],
        "mode" | "merge_method" | "kind" => &[Field::Method, Field::Granularity],
        "skip" | "except" | "ignore" | "without" | "exclusions" => &[Field::Exclude],
        "label" | "title" | "comment" | "description" => &[Field::Name],
        _ => return None,
    };
    meanings.iter().copied().find(|field| candidates.contains(field))
}

/// The granularity or method, of those named, that a word of another tool means.
pub(in crate::surgery) fn choice_meant<'w>(
    word: &str,
    mut names: impl Iterator<Item = &'w str>,
) -> Option<&'w str> {
    let meant = match normalized(word).as_str() {
        "linear" | "average" | "mean" | "weighted" => Method::Lerp.name(),
        "spherical" => Method::Slerp.name(),
        "block" | "blocks" | "depth" => Granularity::Layer.name(),
        "neuron" | "neurons" | "intermediate" | "mlp" | "ffn" => Granularity::MlpChannel.name(),
        _ => return None,
    };
    names.find(|name| *name == meant)
}
