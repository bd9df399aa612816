//! "Did you mean …?"

use std::fmt::Write;

use super::fields::Op;

/// The word that was probably meant: the nearest by edit distance, if it is near, or the only one that has a part of
/// its own near it (`head` for `attention_head`).
pub(super) fn nearest<'w>(word: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // A word much longer than any of ours is none of them misspelt, and distances grow with the square of it.
    if word.len() > 40 {
        return None;
    }
    let written = plain(word);
    let words: Vec<&str> = words.into_iter().collect();
    let allowed = (written.chars().count() / 3).max(1);
    let best = words
        .iter()
        .map(|word| (strsim::damerau_levenshtein(&written, word), *word))
        .min_by_key(|best| best.0);
    if let Some((distance, word)) = best
        && distance <= allowed
    {
        return Some(word);
    }
    let stem = written.trim_end_matches('s');
    let mut parts = words.iter().filter(|word| stem.len() > 3 && word.split('_').any(|part| part == stem));
    parts.next().copied().filter(|_| parts.next().is_none())
}

/// What an operation of another tool, or of another habit, is here, and how it is written.
pub(super) fn operation(word: &str) -> Option<(Op, &'static str)> {
    Some(match plain(word).as_str() {
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
    let meant: &[&str] = match plain(word).as_str() {
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
    let meant = match plain(word).as_str() {
        "linear" | "average" | "mean" | "weighted" => "lerp",
        "spherical" => "slerp",
        "block" | "blocks" | "depth" => "layer",
        "neuron" | "neurons" | "intermediate" | "mlp" | "ffn" => "mlp_channel",
        _ => return None,
    };
    words.find(|word| *word == meant)
}

/// `a`, `b` and `c`, in backticks.
pub(super) fn list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        let before = match at {
            0 => "",
            _ if at + 1 == words.len() => " and ",
            _ => ", ",
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "{before}`{word}`");
    }
    text
}

/// "did you mean …? " in front of a help, if there is something to offer.
pub(super) fn did_you_mean(word: Option<&str>, help: &str) -> String {
    match word {
        Some(word) => format!("did you mean `{word}`? {help}"),
        None => help.to_owned(),
    }
}

fn plain(word: &str) -> String {
    word.trim().to_lowercase().replace(['-', ' '], "_")
}
