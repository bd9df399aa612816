//! What holds of every plan, whatever the operations.

use std::collections::BTreeSet;

use mlxcel::plan::{Action, Plan, Region};
use proptest::prelude::*;

use super::{outcome, planned};

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
        let targets: Vec<usize> = step.edits.iter().map(|edit| edit.target).collect();
        prop_assert!(targets.is_sorted_by(|a, b| a < b), "one edit a tensor, in key order");
        prop_assert!(step.skipped <= step.matched);
    }
    let targets: Vec<usize> = plan.programs().iter().map(|program| program.target).collect();
    prop_assert!(targets.is_sorted_by(|a, b| a < b), "one program a tensor, in key order");
    prop_assert_eq!(plan.summary().tensors_edited, targets.len());
    prop_assert_eq!(plan.digest().is_none(), targets.is_empty());
    for program in plan.programs() {
        let info = &entries[program.target].1;
        prop_assert_eq!((&program.dtype, &program.shape), (&info.dtype, &info.shape));
        prop_assert!(program.actions.is_sorted_by(|a, b| a.0 < b.0), "actions in file order");
        let overwrites = |action: &Action| matches!(action, Action::Replace { .. } | Action::Blend { .. });
        prop_assert!(!program.actions.iter().skip(1).any(|(_, action)| overwrites(action)));
        for (step, action) in &program.actions {
            let edits = &plan.steps()[*step].edits;
            prop_assert!(edits.iter().any(|edit| edit.target == program.target && edit.action == *action));
            if let Action::Zero { region: Region::Slices { axis, ranges } } = action {
                prop_assert!(!ranges.is_empty() && ranges.iter().all(|range| range.start < range.end));
                prop_assert!(ranges.is_sorted_by(|a, b| a.end < b.start), "apart from each other");
                prop_assert!(ranges.iter().all(|range| range.end <= program.shape[*axis]));
            }
        }
    }
    let shared: BTreeSet<_> = plan.programs().iter().filter_map(|p| p.shared_with.clone()).collect();
    prop_assert!(shared.is_empty() || plan.untied().is_empty(), "a tie is kept or broken");
    Ok(())
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
