//! Heads that are zeroed in part, or together with others.

use super::other_operations::OtherOperations;
use crate::checkpoint::{TensorId, TensorIndex};
use crate::diagnostic::{Code, Diagnostic, words};
use crate::plan::planned_operation::PlannedOperation;
use crate::surgery::Operation;

/// Notes on what a `prune` of attention heads leaves behind or changes besides.
pub(super) fn notes(
    index: &TensorIndex,
    operation: &Operation,
    planned: &PlannedOperation,
    others: &OtherOperations<'_>,
) -> Vec<Diagnostic> {
    let Some(heads) = &planned.heads else { return Vec::new() };
    let key = |id: TensorId| index[id].0.as_str();
    let elsewhere = |tensors: &[TensorId]| others.prune(operation, &heads.ids, tensors);
    let without_output: Vec<&str> = (heads.without_output.iter())
        .filter(|module| !elsewhere(&module.output))
        .map(|module| module.parent.as_str())
        .collect();
    let biases: Vec<&str> =
        (heads.biases.iter()).filter(|bias| !elsewhere(&[**bias])).map(|&bias| key(bias)).collect();
    let mut notes = Vec::new();
    let mut note = |code, message: String, help: &str| {
        notes.push(operation.pattern.label_at_use(Diagnostic::new(code, message).help(help), ""));
    };
    if !without_output.is_empty() {
        let names = words::names(&without_output);
        note(
            Code::HalfPrunedHead,
            format!("only `q_proj` is zeroed; these heads attend uniformly and still contribute: {names}"),
            "match `o_proj` too (`o_proj` alone removes a head completely)",
        );
    }
    if !heads.norms.is_empty() {
        let norms: Vec<&str> = heads.norms.iter().map(|&norm| key(norm)).collect();
        note(
            Code::CoupledHeads,
            format!("a norm spans all heads, so the other heads change too: {}", words::names(&norms)),
            "`exclude: \"*.q_proj.*\"`: `o_proj` alone removes a head completely",
        );
    }
    if !biases.is_empty() {
        note(
            Code::BiasLeft,
            format!("the query bias of the pruned heads is not zeroed: {}", words::names(&biases)),
            "match the bias too, with a pattern that ends in `.*`",
        );
    }
    if heads.kv_keys > 0 {
        note(
            Code::KvSkipped,
            format!(
                "{} of `k_proj` and `v_proj` skipped: each serves several heads",
                words::count(heads.kv_keys, "key")
            ),
            "no change is needed; `{q,o}_proj` in the pattern avoids this note",
        );
    }
    notes
}
