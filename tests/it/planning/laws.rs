//! What holds of every plan, whatever the operations.

use std::collections::BTreeSet;

use mlxcel::Plan;
use mlxcel::internals::plan::{Action, Region};
use proptest::prelude::*;

use super::{outcome, planned, refused};

fn pattern() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "*",
        "*.weight",
        "model.layers.*",
        "model.layers.{0,2}.*",
        "model.layers.1.self_attn.*",
        "*.self_attn.{q,o}_proj.weight",
        "*.mlp.*",
        "lm_head.weight",
        "model.embed_tokens.*",
        "*norm.weight",
    ])
}

fn operation() -> impl Strategy<Value = String> {
    let number = prop::sample::select(vec!["1", "0.5", "-2", "0"]);
    let ids = prop::collection::vec(0_u64..5, 1..4);
    let fields = prop_oneof![
        number.clone().prop_map(|factor| format!("op: scale, factor: {factor}")),
        number.prop_map(|alpha| format!("op: add, source: ../models/za.safetensors, alpha: {alpha}")),
        ids.clone().prop_map(|ids| format!("op: prune, granularity: layer, layer_ids: {ids:?}")),
        ids.clone().prop_map(|ids| format!("op: prune, granularity: attention_head, head_ids: {ids:?}")),
        ids.prop_map(|ids| format!("op: prune, granularity: mlp_channel, channel_ids: {ids:?}")),
        Just("op: interpolate, source_a: ../models/za.safetensors, source_b: ../models/zb.safetensors, ratio: 0.3, method: slerp".to_owned()),
    ];
    (fields, pattern()).prop_map(|(fields, pattern)| format!(r#"{fields}, pattern: "{pattern}""#))
}

fn check(plan: &Plan) -> Result<(), TestCaseError> {
    let entries = plan.base().weights.index.entries();
    for step in plan.steps() {
        let targets: Vec<_> = step.edits.iter().map(|edit| edit.target).collect();
        prop_assert!(targets.is_sorted_by(|a, b| a < b), "one edit a tensor, in key order");
        prop_assert!(step.skipped <= step.matched);
    }
    let targets: Vec<_> = plan.programs().iter().map(mlxcel::Program::target).collect();
    prop_assert!(targets.is_sorted_by(|a, b| a < b), "one program a tensor, in key order");
    prop_assert_eq!(plan.summary().tensors_edited, targets.len());
    prop_assert_eq!(plan.digest().is_none(), targets.is_empty());
    for program in plan.programs() {
        let info = &entries[program.target().position()].1;
        prop_assert_eq!((program.dtype(), program.shape()), (info.dtype, info.shape.as_slice()));
        prop_assert!(program.actions().is_sorted_by(|a, b| a.0 < b.0), "actions in file order");
        let overwrites = |action: &Action| {
            matches!(
                action,
                Action::Replace { .. } | Action::Blend { .. } | Action::Zero { region: Region::Whole }
            )
        };
        prop_assert!(!program.actions().iter().skip(1).any(|(_, action)| overwrites(action)));
        for (step, action) in program.actions() {
            let edits = &plan.step(*step).edits;
            prop_assert!(edits.iter().any(|edit| edit.target == program.target() && edit.action == *action));
            if let Action::Zero { region: Region::Slices { axis, ranges } } = action {
                prop_assert!(!ranges.is_empty() && ranges.iter().all(|range| range.start < range.end));
                prop_assert!(ranges.is_sorted_by(|a, b| a.end < b.start), "apart from each other");
                prop_assert!(ranges.iter().all(|range| range.end <= program.shape()[*axis]));
            }
        }
    }
    let shared: BTreeSet<_> = plan.programs().iter().filter_map(|p| p.shared_with().cloned()).collect();
    prop_assert!(shared.is_empty() || plan.untied().is_empty(), "a tie is kept or broken");
    Ok(())
}

#[test]
fn thousands_of_operations_are_planned() {
    let scale = |n| format!("op: scale, pattern: '*', factor: {n}");
    let layer =
        |n| format!("op: prune, granularity: layer, layer_ids: [1], pattern: 'model.layers.{{1,{n}}}.*'");
    let operations: Vec<String> = (2..5000).flat_map(|n| [scale(n), layer(n)]).collect();
    let plan = planned("bf16", &operations.join("\n"));
    assert_eq!(plan.steps().len(), 9996);
    let edited = plan.steps()[0].edits.len();
    assert!(edited > 20 && plan.steps().iter().step_by(2).all(|step| step.edits.len() == edited));
    assert!(plan.diagnostics().len() <= 200, "what is said is bounded");
}

#[test]
fn after_many_mistakes_the_rest_is_counted() {
    let operations: Vec<String> =
        (0..3000).map(|n| format!("op: scale, pattern: 'nothing.{n}.*', factor: 2")).collect();
    let mistakes = refused("bf16", &operations.join("\n"));
    assert_eq!(mistakes.len(), 200);
    let last = mistakes[199].help.as_deref().unwrap_or_default();
    assert!(last.ends_with("more diagnostics are not shown"), "{last}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_are_in_order_within_bounds_and_without_dead_actions(
        operations in prop::collection::vec(operation(), 1..6),
        model in prop::sample::select(vec!["f32-tied", "q4", "stored-head", "bf16"]),
    ) {
        match outcome(model, &operations.join("\n")) {
            Ok(plan) => check(&plan)?,
            Err(refusal) => {
                let places: Vec<_> = refusal.diagnostics.iter().map(|d| d.labels[0].span.start).collect();
                prop_assert!(places.is_sorted(), "mistakes in file order");
            }
        }
    }

    #[test]
    fn operations_are_planned_alone_as_in_company(a in operation(), b in operation()) {
        let together = outcome("f32-tied", &format!("{a}\n{b}"));
        if let Ok(both) = together {
            let (first, second) = (planned("f32-tied", &a), planned("f32-tied", &b));
            let actions = |plan: &Plan, step: usize| {
                let edits = plan.steps()[step].edits.iter();
                // Donors are numbered within a plan.
                let plain = |action| super::describe(action).replace(['0', '1', '2'], "");
                edits.map(|edit| (edit.target, plain(&edit.action))).collect::<Vec<_>>()
            };
            prop_assert_eq!(actions(&both, 0), actions(&first, 0));
            prop_assert_eq!(actions(&both, 1), actions(&second, 0));
        } else {
            prop_assert!(outcome("f32-tied", &a).is_err() || outcome("f32-tied", &b).is_err());
        }
    }
}
