//! `prune` by heads, and ids that do not exist or reach nothing.

use mlxcel::Code;

use super::{codes, planned, programs, refused};
use crate::sparse::fixtures;

#[test]
fn the_width_of_a_head_is_the_modules_own() {
    let operation = r#"op: prune, granularity: attention_head, pattern: "*.o_proj.weight", head_ids: [2]"#;
    assert_eq!(
        programs(&planned("widths", operation)),
        [
            "model.layers.0.self_attn.o_proj.weight: 0 in columns [32..48]",
            "model.layers.1.self_attn.o_proj.weight: 0 in columns [64..96]",
            "model.layers.2.self_attn.o_proj.weight: 0 in columns [32..48]",
        ]
    );
}

#[test]
fn a_gated_query_has_twice_the_rows() {
    let operation = r#"op: prune, granularity: attention_head, pattern: "model.layers.0.self_attn.*", head_ids: [1, 0, 3]"#;
    let plan = planned("gated", operation);
    assert_eq!(
        programs(&plan),
        [
            "model.layers.0.self_attn.o_proj.weight: 0 in columns [0..32, 48..64]",
            "model.layers.0.self_attn.q_proj.weight: 0 in rows [0..64, 96..128]",
        ]
    );
    assert_eq!((plan.steps()[0].matched, plan.steps()[0].skipped), (4, 2));
    assert_eq!(codes(&plan), [Code::KvSkipped]);
}

#[test]
fn heads_of_a_set_are_rows_and_whole_groups_of_columns() {
    let operation = r#"op: prune, granularity: attention_head, pattern: "model.layers.0.self_attn.{q,o}_proj.weight", head_ids: [1]"#;
    assert_eq!(
        programs(&planned("q4-wide", operation)),
        [
            "model.layers.0.self_attn.o_proj.biases: 0 in columns [2..4]",
            "model.layers.0.self_attn.o_proj.scales: 0 in columns [2..4]",
            "model.layers.0.self_attn.q_proj.biases: 0 in rows [64..128]",
            "model.layers.0.self_attn.q_proj.scales: 0 in rows [64..128]",
        ]
    );
}

#[test]
fn a_fused_query_has_its_rows_before_keys_and_values() {
    let operation = r#"op: prune, granularity: attention_head, pattern: "model.layers.0.self_attn.qkv_proj.*", head_ids: [3]"#;
    let plan = planned("phi3", operation);
    assert_eq!(programs(&plan), ["model.layers.0.self_attn.qkv_proj.weight: 0 in rows [48..64]"]);
    assert_eq!(codes(&plan), [Code::HalfPrunedHead]);
}

#[test]
fn rows_and_bias_of_a_query_are_zeroed_together() {
    let operation = r#"op: prune, granularity: attention_head, pattern: "model.layers.0.self_attn.{q,o}_proj.*", head_ids: [0]"#;
    assert_eq!(
        programs(&planned("f16-sharded", operation)),
        [
            "model.layers.0.self_attn.o_proj.weight: 0 in columns [0..16]",
            "model.layers.0.self_attn.q_proj.bias: 0 in rows [0..16]",
            "model.layers.0.self_attn.q_proj.weight: 0 in rows [0..16]",
        ]
    );
}

#[track_caller]
fn check(model: &str, operation: &str, expected: &[(Code, &str)]) {
    let errors = refused(model, operation);
    let seen: Vec<Code> = errors.iter().map(|d| d.code).collect();
    assert_eq!(seen, expected.iter().map(|(code, _)| *code).collect::<Vec<_>>(), "{errors:#?}");
    for (error, (_, mention)) in errors.iter().zip(expected) {
        assert!(error.message.contains(mention), "{error:#?}");
    }
}

#[test]
fn ids_that_do_not_exist_are_named_one_by_one() {
    check(
        "bf16",
        r#"op: prune, granularity: layer, pattern: "model.layers.*", layer_ids: [0, 7, 3]"#,
        &[
            (Code::LayerOutOfRange, "`model.layers` has no layer 7 (layers 0–2)"),
            (Code::LayerOutOfRange, "`model.layers` has no layer 3"),
        ],
    );
    check(
        "bf16",
        r#"op: prune, granularity: attention_head, pattern: "model.layers.*.self_attn.*", head_ids: [4]"#,
        &[(Code::HeadOutOfRange, "the model has no head 4 (query heads 0–3)")],
    );
    check(
        "bf16",
        r#"op: prune, granularity: mlp_channel, pattern: "model.layers.*.mlp.*", channel_ids: [96]"#,
        &[(Code::ChannelOutOfRange, "`model.layers.0.mlp` has no channel 96 (channels 0–95)")],
    );
}

#[test]
fn an_id_that_exists_must_reach_a_tensor() {
    check(
        "bf16",
        r#"op: prune, granularity: layer, pattern: "model.layers.0.*", layer_ids: [0, 1]"#,
        &[(Code::LayerOutOfRange, "the pattern matches no tensor of layer 1")],
    );
}

#[test]
fn an_operation_that_zeroes_nothing_is_one_error() {
    let nothing = |granularity: &str, pattern: &str, ids: &str| {
        format!(r#"op: prune, granularity: {granularity}, pattern: "{pattern}", {ids}: [0]"#)
    };
    let expected = |mention| [(Code::NoPrunableTensor, mention)];
    check(
        "bf16",
        &nothing("layer", "*norm.weight", "layer_ids").replace("*norm", "model.norm"),
        &expected("layer"),
    );
    check("bf16", &nothing("attention_head", "*.k_proj.*", "head_ids"), &expected("attention_head"));
    check("bf16", &nothing("attention_head", "*.mlp.*", "head_ids"), &expected("attention_head"));
    check("bf16", &nothing("mlp_channel", "*.self_attn.*", "channel_ids"), &expected("mlp_channel"));
    check("ints", &nothing("layer", "*.mlp.{mask,steps}", "layer_ids"), &expected("layer"));
}

#[test]
fn heads_and_channels_of_other_towers_are_left_alone() {
    check(
        "stacks",
        r#"op: prune, granularity: attention_head, pattern: "vision_tower.*", head_ids: [0]"#,
        &[(Code::NoPrunableTensor, "attention_head")],
    );
    let operation = r#"op: prune, granularity: attention_head, pattern: "*.o_proj.weight", head_ids: [0]"#;
    let plan = planned("stacks", operation);
    assert_eq!(plan.programs().len(), 3);
    assert!(plan.steps()[0].skipped > 0);
}

#[test]
fn a_head_count_of_the_wrong_type_is_not_the_default_of_the_model_type() {
    for (name, value) in [
        ("num_attention_heads", r#""4""#),
        ("num_attention_heads", "4.0"),
        ("num_attention_heads", "0"),
        ("num_attention_heads", "-1"),
        ("num_key_value_heads", "true"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let from = fixtures("models/tiny-tales/base");
        let config = std::fs::read_to_string(from.join("config.json")).unwrap();
        let mut config: serde_json::Value = serde_json::from_str(&config).unwrap();
        config[name] = serde_json::from_str(value).unwrap();
        std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
        std::fs::copy(from.join("model.safetensors"), dir.path().join("model.safetensors")).unwrap();
        let text = "version: 1\noperations:\n  - {op: prune, granularity: attention_head, pattern: '*', head_ids: [1]}\n";
        let file = mlxcel::SurgeryFile::parse(std::path::Path::new("surgery.yaml"), text.as_bytes());
        let refusal = mlxcel::plan(&file, mlxcel::Checkpoint::open(dir.path()).unwrap());
        let found = refusal.unwrap_err().diagnostics;
        let layout = found.iter().find(|one| one.code == Code::UnsupportedLayout);
        assert!(layout.is_some_and(|one| one.message.contains(name)), "{name} {value}: {found:?}");
    }
}
