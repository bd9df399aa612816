//! Which tensors an operation edits, and how.

use mlxcel::Code;

use super::{codes, planned, programs, refused};

#[track_caller]
fn check(model: &str, operations: &str, expected: &[&str]) {
    let plan = planned(model, operations);
    assert_eq!(programs(&plan), expected);
}

#[test]
fn a_set_is_scaled_once_whichever_members_are_matched() {
    let expected = ["model.layers.0.mlp.up_proj.biases: × 2", "model.layers.0.mlp.up_proj.scales: × 2"];
    for pattern in ["weight", "{weight,scales}", "*", "{biases,weight}", "{scales,biases}"] {
        let operation = format!(r#"op: scale, pattern: "model.layers.0.mlp.up_proj.{pattern}", factor: 2"#);
        check("q4", &operation, &expected);
    }
}

#[test]
fn scales_alone_are_scaled_alone_and_remarked() {
    let operation = r#"op: scale, pattern: "model.layers.0.mlp.up_proj.scales", factor: 2"#;
    let plan = planned("q4", operation);
    assert_eq!(programs(&plan), ["model.layers.0.mlp.up_proj.scales: × 2"]);
    assert_eq!(codes(&plan), [Code::PartialAffineSet]);
}

#[test]
fn pruning_a_set_zeroes_scales_and_biases_whichever_member_is_matched() {
    let expected = ["model.layers.1.mlp.up_proj.biases: 0", "model.layers.1.mlp.up_proj.scales: 0"];
    for suffix in ["weight", "scales", "biases", "*"] {
        let operation = format!(
            r#"op: prune, granularity: layer, pattern: "model.layers.*.mlp.up_proj.{suffix}", layer_ids: [1]"#
        );
        check("q4", &operation, &expected);
    }
}

#[test]
fn layers_are_found_under_h_too() {
    let operation = r#"op: prune, granularity: layer, pattern: "*.mlp.*", layer_ids: [2]"#;
    let keys =
        ["down_proj", "gate_proj", "up_proj"].map(|name| format!("transformer.h.2.mlp.{name}.weight: 0"));
    check("h-keys", operation, &keys.each_ref().map(String::as_str));
}

#[test]
fn channels_of_mixtral_experts_are_rows_of_w1_and_w3_and_columns_of_w2() {
    let operation =
        r#"op: prune, granularity: mlp_channel, pattern: "model.layers.0.*.experts.1.*", channel_ids: [4]"#;
    check(
        "mixtral",
        operation,
        &[
            "model.layers.0.block_sparse_moe.experts.1.w1.weight: 0 in rows [4..5]",
            "model.layers.0.block_sparse_moe.experts.1.w2.weight: 0 in columns [4..5]",
            "model.layers.0.block_sparse_moe.experts.1.w3.weight: 0 in rows [4..5]",
        ],
    );
}

#[test]
fn each_expert_has_its_own_channels_and_the_router_is_left_alone() {
    let operation =
        r#"op: prune, granularity: mlp_channel, pattern: "model.layers.1.mlp.*", channel_ids: [0, 1]"#;
    let plan = planned("moe-each", operation);
    assert_eq!(plan.programs().len(), 12);
    assert_eq!((plan.steps()[0].matched, plan.steps()[0].skipped), (13, 1));
}

#[test]
fn a_gate_in_an_attention_module_has_no_mlp_channels() {
    let operation = r#"op: prune, granularity: mlp_channel, pattern: "model.layers.0.*", channel_ids: [95]"#;
    check(
        "attn-gate",
        operation,
        &[
            "model.layers.0.mlp.down_proj.weight: 0 in columns [95..96]",
            "model.layers.0.mlp.gate_proj.weight: 0 in rows [95..96]",
            "model.layers.0.mlp.up_proj.weight: 0 in rows [95..96]",
        ],
    );
}

#[test]
fn a_dense_down_proj_beside_quantized_gate_and_up_is_pruned_with_them() {
    let operation =
        r#"op: prune, granularity: mlp_channel, pattern: "model.layers.2.mlp.*", channel_ids: [3]"#;
    check(
        "override",
        operation,
        &[
            "model.layers.2.mlp.down_proj.weight: 0 in columns [3..4]",
            "model.layers.2.mlp.gate_proj.biases: 0 in rows [3..4]",
            "model.layers.2.mlp.gate_proj.scales: 0 in rows [3..4]",
            "model.layers.2.mlp.up_proj.biases: 0 in rows [3..4]",
            "model.layers.2.mlp.up_proj.scales: 0 in rows [3..4]",
        ],
    );
}

#[test]
fn gate_and_up_of_a_quantized_mlp_can_be_pruned_without_down() {
    let operation = r#"op: prune, granularity: mlp_channel, pattern: "model.layers.0.mlp.{gate,up}_proj.weight", channel_ids: [95]"#;
    assert_eq!(planned("q4", operation).programs().len(), 4);
}

#[test]
fn channels_of_a_fused_matrix_have_two_rows() {
    let operation =
        r#"op: prune, granularity: mlp_channel, pattern: "model.layers.0.mlp.*", channel_ids: [7]"#;
    check(
        "phi3",
        operation,
        &[
            "model.layers.0.mlp.down_proj.weight: 0 in columns [7..8]",
            "model.layers.0.mlp.gate_up_proj.weight: 0 in rows [7..8, 103..104]",
        ],
    );
}

#[test]
fn a_set_is_replaced_as_a_whole_beside_the_stem_of_the_donor_key() {
    let operation = r#"op: replace, pattern: "model.layers.1.self_attn.q_proj.weight", source: ../models/q-donor.safetensors, source_key: other.1.q.weight"#;
    check(
        "q4",
        operation,
        &[
            "model.layers.1.self_attn.q_proj.biases: = 0:other.1.q.biases",
            "model.layers.1.self_attn.q_proj.scales: = 0:other.1.q.scales",
            "model.layers.1.self_attn.q_proj.weight: = 0:other.1.q.weight",
        ],
    );
}

#[test]
fn a_missing_head_of_a_donor_is_served_by_its_embedding() {
    let operation = r"op: add, pattern: lm_head.weight, source: ../models/head-only-embed.safetensors";
    check("stored-head", operation, &["lm_head.weight: + 1 · 0:model.embed_tokens.weight"]);
}

#[test]
fn programs_hold_actions_in_file_order_and_drop_what_is_overwritten() {
    let operations = r"
        op: scale, pattern: model.norm.weight, factor: 3
        op: replace, pattern: model.norm.weight, source: ../models/delta-f32.safetensors, source_key: model.norm.weight
        op: add, pattern: model.norm.weight, source: ../models/nan.safetensors, alpha: 0.5
        op: scale, pattern: model.norm.weight, factor: 1
        op: scale, pattern: model.norm.weight, factor: 2
    ";
    let plan = planned("odd-values", operations);
    let expected = "model.norm.weight: = 0:model.norm.weight, + 0.5 · 1:model.norm.weight, × 2";
    assert_eq!(programs(&plan), [expected]);
    let steps: Vec<usize> = plan.programs()[0].actions().iter().map(|(step, _)| step.position()).collect();
    assert_eq!(steps, [1, 2, 4]);
    assert_eq!(plan.steps().iter().map(|step| step.edits.len()).collect::<Vec<_>>(), [1; 5]);
    assert!(codes(&plan).contains(&Code::Overwritten) && codes(&plan).contains(&Code::NoEffect));
}

#[test]
fn what_is_read_and_written_is_counted() {
    let operations = r"
        op: interpolate, pattern: model.norm.weight, source_a: ../models/za.safetensors, source_b: ../models/zb.safetensors, ratio: 0.5, method: slerp
        op: scale, pattern: model.layers.0.input_layernorm.weight, factor: 2
    ";
    let summary = planned("f32-tied", operations).summary().clone();
    assert_eq!((summary.operations, summary.tensors_edited), (2, 2));
    assert_eq!((summary.base_bytes, summary.result_bytes), (256, 512));
    assert_eq!(summary.donor_bytes, 4 * 256, "both donors, in both passes");
    assert_eq!(summary.peak_extra_bytes, 256 + 2 * 256);
}

#[test]
fn a_stored_head_is_used_even_in_a_tied_model() {
    let plan = planned("stored-head", r"op: scale, pattern: lm_head.weight, factor: 2");
    assert_eq!((codes(&plan), plan.untied()), (vec![], &[][..]));
}

#[test]
fn two_spellings_of_a_donor_are_one_donor() {
    let operations = r"
        op: add, pattern: model.norm.weight, source: ../models/a.safetensors
        op: add, pattern: lm_head.weight, source: ../models/../models/a.safetensors
    ";
    let plan = planned("f16-sharded", operations);
    assert_eq!(plan.donors().len(), 1);
    assert_eq!(plan.donors()[0].written, "../models/a.safetensors");
}

#[test]
fn a_member_that_is_missing_refuses_the_set_only() {
    let scale = |pattern: &str| format!(r#"op: scale, pattern: "{pattern}", factor: 2"#);
    let errors = refused("q4-hole", &scale("model.layers.*.self_attn.*"));
    assert_eq!(errors.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::IncompleteAffineSet]);
    assert!(errors[0].message.contains("`model.layers.1.self_attn.q_proj`"), "{}", errors[0].message);
    planned("q4-hole", &scale("model.layers.{0,2}.self_attn.*"));
}
