//! Warnings, advice, and how mistakes are gathered.

use mlxcel::internals::plan::{check, refuse};
use mlxcel::{Checkpoint, Code, Severity, plan};

use super::{codes, file, made, model, outcome, planned, refused};
use crate::sparse;

#[test]
fn a_query_pruned_alone_is_warned_of_unless_another_operation_takes_the_output() {
    let query =
        r#"op: prune, granularity: attention_head, pattern: "*.0.self_attn.q_proj.weight", head_ids: [1]"#;
    assert_eq!(codes(&planned("bf16", query)), [Code::HalfPrunedHead]);
    let output = r#"op: prune, granularity: attention_head, pattern: "*.o_proj.weight", head_ids: [0, 1]"#;
    assert_eq!(codes(&planned("bf16", &format!("{query}\n{output}"))), []);
    assert_eq!(codes(&planned("bf16", output)), [], "the output alone is a complete ablation");
}

#[test]
fn a_bias_that_stays_is_remarked() {
    let prune = r#"op: prune, granularity: attention_head, pattern: "*.0.self_attn.{q,o}_proj.weight", head_ids: [1]"#;
    assert_eq!(codes(&planned("f16-sharded", prune)), [Code::BiasLeft]);
    let replace = r"op: replace, pattern: model.layers.0.self_attn.q_proj.weight, source: ../models/a.safetensors, source_key: model.layers.1.self_attn.q_proj.weight";
    let plan = planned("f16-sharded", replace);
    assert_eq!(codes(&plan), [Code::BiasLeft, Code::UnreachedDonor]);
    let bias = replace.replace("weight", "bias");
    assert!(!codes(&planned("f16-sharded", &format!("{replace}\n{bias}"))).contains(&Code::BiasLeft));
}

#[test]
fn repeated_ids_collapse_with_one_advice() {
    let operation = r#"op: prune, granularity: layer, pattern: "model.layers.*", layer_ids: [1, 2, 1, 1]"#;
    let plan = planned("bf16", operation);
    assert_eq!((codes(&plan), plan.programs().len()), (vec![Code::DuplicateId], 18));
    assert_eq!(plan.diagnostics()[0].labels.len(), 2);
}

#[test]
fn a_parameter_must_be_finite_in_the_working_precision_of_its_tensors() {
    let scale = |pattern: &str| format!("op: scale, pattern: {pattern}, factor: 1.0e39");
    let errors = refused("bf16", &scale("model.norm.weight"));
    assert_eq!(errors[0].code, Code::NotFinite);
    assert!(errors[0].message.contains("f32"), "{}", errors[0].message);
    planned("f32-tied", &scale("model.norm.weight"));
    let add = "op: add, pattern: model.norm.weight, source: ../models/delta-f32.safetensors, alpha: -1.0e39";
    assert_eq!(refused("bf16", add)[0].code, Code::NotFinite);
}

#[test]
fn one_missing_donor_is_one_error_wherever_it_is_used() {
    let add = |key: &str| format!("op: add, pattern: {key}, source: nowhere.safetensors\n");
    let errors = refused("bf16", &(add("model.norm.weight") + &add("lm_head.weight")));
    assert_eq!(
        errors.iter().map(|d| (d.code, d.labels.len())).collect::<Vec<_>>(),
        [(Code::DonorNotFound, 2)]
    );
    let help = errors[0].help.as_deref().unwrap_or_default();
    assert!(help.contains("conformance/surgery/noop"), "{help}");
}

#[test]
fn mistakes_of_file_pattern_donor_and_ids_are_reported_in_one_run_in_file_order() {
    let operations = r#"
        op: prune, granularity: layer, pattern: "model.layers.*", layer_ids: [9]
        op: scale, pattern: model.nrom.weight, factor: 2
        op: add, pattern: model.norm.weight, source: nowhere.safetensors
        op: scale, pattern: model.norm.weight, facto: 2
        op: replace, pattern: model.norm.weight, source: ../models/bad-shape.safetensors, source_key: model.norm.weight
    "#;
    let expected =
        [Code::LayerOutOfRange, Code::NoMatch, Code::DonorNotFound, Code::UnknownField, Code::ShapeMismatch];
    let codes: Vec<Code> = refused("bf16", operations).iter().map(|d| d.code).collect();
    let missing = codes.iter().position(|code| *code == Code::MissingField);
    let without: Vec<Code> = codes.iter().copied().filter(|code| *code != Code::MissingField).collect();
    assert!(missing.is_none_or(|at| at > 2), "{codes:?}");
    assert_eq!(without, expected);
}

#[test]
fn a_model_that_cannot_be_read_is_reported_beside_the_files_mistakes() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let errors = Checkpoint::open(dir.path()).expect_err("an empty directory is no model");
    let file = file("op: scale, pattern: x, factor: .nan\nop: add, pattern: x, source: nowhere.safetensors");
    let refusal = refuse(&file, &errors);
    let codes: Vec<Code> = refusal.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes.last_chunk(), Some(&[Code::NotFinite, Code::DonorNotFound]));
    assert_eq!(codes[0], Code::ModelUnreadable);
}

#[test]
fn without_a_model_donors_are_still_looked_at() {
    let operations = r#"
        op: add, pattern: "*.up_proj.weight", source: ../models/delta-sparse.safetensors
        op: add, pattern: "*.down_proj.weight", source: ../models/delta-sparse.safetensors
        op: add, pattern: "*", source: nowhere.safetensors
    "#;
    let found = |donors| check(&file(operations), donors).iter().map(|d| d.code).collect::<Vec<_>>();
    assert_eq!(found(true), [Code::DonorKeyMissing, Code::DonorNotFound]);
    assert_eq!(found(false), []);
}

#[test]
fn an_exclude_that_leaves_nothing_is_an_error_at_the_exclude() {
    let errors = refused("bf16", r#"op: scale, pattern: "model.norm.*", exclude: "*.weight", factor: 2"#);
    assert_eq!(errors[0].code, Code::NoMatch);
    assert!(
        errors[0].message.contains("`exclude` removes every match: 1 key matches"),
        "{}",
        errors[0].message
    );
}

#[test]
fn norms_that_are_used_as_one_plus_w_are_remarked() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let remarks = |operations: &str| {
        let target = dir.path().join("gemma");
        sparse::checkpoint("gemma-2-2b", &target);
        codes(&plan(&file(operations), Checkpoint::open(&target).expect("a checkpoint")).expect("a plan"))
    };
    assert_eq!(remarks(r#"op: scale, pattern: "*norm.weight", factor: 2"#), [Code::GemmaNormOffset]);
    assert_eq!(remarks(r#"op: scale, pattern: "*.up_proj.weight", factor: 2"#), []);
}

#[test]
fn an_edited_embedding_of_a_vision_language_model_without_a_head_is_remarked() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    sparse::checkpoint("qwen2.5-vl-3b", dir.path());
    let base = Checkpoint::open(dir.path()).expect("a checkpoint");
    let plan = plan(&file("op: scale, pattern: model.embed_tokens.weight, factor: 2"), base).expect("a plan");
    assert_eq!(codes(&plan), [Code::SharedEmbedding]);
    assert!(plan.untied().is_empty());
}

/// Four layers. The last two read the keys and values of earlier ones; each has a scalar on the residual.
const SHARING: &str = "
    model.layers.{0..3}.layer_scalar BF16 1
    model.layers.{0..3}.self_attn.k_proj.weight BF16 8,8
    model.layers.{0..3}.self_attn.q_proj.weight BF16 8,8
    model.layers.{0..3}.self_attn.o_proj.weight BF16 8,8";

#[test]
fn layers_that_others_depend_on_are_warned_of_with_the_exclude_that_spares_them() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = r#"{"model_type": "gemma4", "num_attention_heads": 2, "text_config":
        {"num_hidden_layers": 4, "num_kv_shared_layers": 2, "layer_types": ["a", "a", "b", "a"]}}"#;
    let remarks = |layer: u64, exclude: &str| {
        let operation = format!(
            r#"op: prune, granularity: layer, pattern: "model.layers.*", exclude: {exclude}, layer_ids: [{layer}]"#
        );
        codes(&plan(&file(&operation), made(dir.path(), config, SHARING)).expect("a plan"))
    };
    let (scalar, kv) = (r#""*.layer_scalar""#, r#""*.self_attn.{k_proj,v_proj,k_norm,v_norm}.*""#);
    assert_eq!(remarks(1, r#""model.layers.*.q_norm""#)[0], Code::ResidualOrSharedKv);
    assert_eq!(
        remarks(1, scalar),
        [Code::ResidualOrSharedKv],
        "layer 1 is the last of its kind before sharing"
    );
    assert_eq!(remarks(0, scalar), []);
    assert_eq!(remarks(1, &format!("[{scalar}, {kv}]")), []);
}

#[test]
fn a_norm_over_all_heads_couples_them() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let list = "
        model.layers.0.self_attn.q_proj.weight BF16 8,8
        model.layers.0.self_attn.q_norm.weight BF16 8
        model.layers.0.self_attn.o_proj.weight BF16 8,8";
    let remarks = |pattern: &str| {
        let base = made(dir.path(), r#"{"model_type": "olmo2", "num_attention_heads": 2}"#, list);
        let operation =
            format!(r#"op: prune, granularity: attention_head, pattern: "{pattern}", head_ids: [1]"#);
        codes(&plan(&file(&operation), base).expect("a plan"))
    };
    assert_eq!(remarks("*"), [Code::CoupledHeads]);
    assert_eq!(remarks("*.o_proj.weight"), []);
}

#[test]
fn a_config_with_absurd_head_counts_is_no_layout() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let list = "a.0.attn.q_proj.weight BF16 8,8\na.0.attn.o_proj.weight BF16 8,8";
    for heads in ["18446744073709551615", "9223372036854775807", "2147483647", "3", "0", "null", "\"8\""] {
        let config = format!(
            r#"{{"model_type": "x", "num_attention_heads": {heads}, "num_key_value_heads": {heads}}}"#
        );
        let operation = r#"op: prune, granularity: attention_head, pattern: "*", head_ids: [0]"#;
        let refusal = plan(&file(operation), made(dir.path(), &config, list)).expect_err("no layout");
        assert_eq!(refusal.diagnostics[0].code, Code::UnsupportedLayout, "{heads}");
    }
}

#[test]
fn a_dtype_that_cannot_be_loaded_is_refused_where_it_is_used() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let list = "a.weight F64 4\nb.weight BF16 4";
    let outcome = |pattern: &str| {
        let base = made(dir.path(), r#"{"model_type": "x"}"#, list);
        plan(&file(&format!(r#"op: scale, pattern: "{pattern}", factor: 2"#)), base)
    };
    let refusal = outcome("*").expect_err("F64 is refused");
    assert_eq!(refusal.diagnostics[0].code, Code::ModelUnreadable);
    assert!(refusal.diagnostics[0].message.contains("F64"));
    outcome("b.*").expect("the rest is fine");
}

#[test]
fn a_set_for_a_dense_base_and_a_dense_donor_for_a_set_are_told_apart() {
    let replace = |source: &str, key: &str| {
        format!(
            "op: replace, pattern: model.layers.0.self_attn.q_proj.weight, source: ../models/{source}, source_key: {key}"
        )
    };
    let errors = refused("bf16", &replace("q4", "model.layers.0.self_attn.q_proj.weight"));
    assert_eq!(errors[0].code, Code::DtypeMismatch);
    assert!(errors[0].help.as_deref().is_some_and(|help| help.contains("dequantize the donor to BF16")));
    let errors = refused("q4", &replace("bf16", "model.layers.0.self_attn.q_proj.weight"));
    assert_eq!(errors.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::DtypeMismatch]);
    assert!(errors[0].help.as_deref().is_some_and(|help| help.contains("4 bits, groups of 32")));
}

#[test]
fn packed_codes_go_before_missing_keys_and_shapes() {
    let add = r#"op: add, pattern: "model.layers.0.mlp.*", source: ../models/delta-sparse.safetensors"#;
    assert_eq!(refused("q4", add).iter().map(|d| d.code).collect::<Vec<_>>(), [Code::PackedCodes]);
    let donor = "op: add, pattern: model.layers.0.self_attn.q_proj.weight, source: ../models/q4";
    assert_eq!(refused("bf16", donor).iter().map(|d| d.code).collect::<Vec<_>>(), [Code::PackedCodes]);
}

#[test]
fn a_broken_tie_lists_the_head_and_a_kept_one_shares_it() {
    let plan = planned("f32-tied", "op: scale, pattern: lm_head.weight, factor: 2");
    let head = model("f32-tied").weights.index.position("lm_head.weight");
    assert_eq!(plan.untied(), [head.expect("a tied head")]);
    assert_eq!(plan.base_tensor(&plan.programs()[0]).1.end, {
        let index = &plan.base().weights.index;
        let embedding = index.get("model.embed_tokens.weight").expect("an embedding");
        plan.base().weights.locate(embedding).1.end
    });
    let both = r#"op: scale, pattern: "{lm_head,model.embed_tokens}.weight", factor: 2"#;
    let plan = planned("f32-tied", both);
    assert!(plan.untied().is_empty());
    assert_eq!(
        plan.programs()[0].shared_with().map(mlxcel::internals::checkpoint::Key::as_str),
        Some("lm_head.weight")
    );
    let one_dropped = format!("{both}\nop: scale, pattern: lm_head.weight, factor: 1");
    assert!(planned("f32-tied", &one_dropped).untied().is_empty(), "a factor of 1 does not break a tie");
    assert!(
        outcome("override", both).is_ok_and(|plan| plan.programs().iter().all(|p| p.shared_with().is_some()))
    );
}

#[test]
fn advice_and_warnings_do_not_refuse() {
    let plan = planned("bf16", "op: scale, pattern: model.norm.weight, factor: 1");
    assert!(plan.diagnostics().iter().all(|d| d.severity() == Severity::Advice));
    assert_eq!((plan.programs().len(), plan.digest()), (0, None));
}

#[test]
fn what_does_nothing_in_a_pattern_or_an_exclude_is_advised_of() {
    let helps = |operation: &str| {
        let plan = planned("bf16", operation);
        assert!(!plan.programs().is_empty(), "{operation}");
        let dead = plan.diagnostics().iter().filter(|found| found.code == Code::DeadAlternative);
        dead.map(|found| found.help.clone().unwrap_or_default()).collect::<Vec<_>>()
    };
    let scale = |pattern: &str, exclude: &str| {
        helps(&format!(r#"op: scale, pattern: "{pattern}", exclude: "{exclude}", factor: 2"#))
    };
    let pattern = "model.layers.0.mlp.*";
    assert!(scale(pattern, "model.layers.0.mlp.up_proj")[0].contains("completed, it matches 1 key"));
    assert!(scale(pattern, "model.layers.1.*")[0].contains("none that `pattern` matches"));
    assert_eq!(scale(pattern, "*.up_proj.weight"), [""; 0]);
    assert_eq!(
        scale("model.layers.[0..1].mlp.*", "*.up_proj.weight"),
        ["write `{0..1}` for a range of numbers"]
    );
    assert_eq!(scale("model.layers.[0-1].mlp.*", "*.up_proj.weight"), [""; 0]);
}

#[test]
fn a_donor_whose_configuration_cannot_be_read_is_warned_of() {
    use crate::fixture::{Directives, Fixture};
    let yaml = "version: 1\noperations:\n  - op: replace\n    pattern: model.norm.weight\n    source: donor\n    \
                source_key: model.norm.weight\n";
    let stage = Fixture::new("qwen3-4b-4bit", yaml);
    Directives::default().make_donors(yaml, "qwen3-4b-4bit", stage.dir());
    let check = |config: Option<&str>, expected: &[Code]| {
        let path = stage.dir().join("donor/config.json");
        match config {
            Some(text) => std::fs::write(path, text).expect("a file can be written"),
            None => std::fs::remove_file(path).expect("a file can be removed"),
        }
        let file = mlxcel::SurgeryFile::read(&stage.dir().join("surgery.yaml"));
        let base = mlxcel::Checkpoint::open(&stage.dir().join("model")).expect("a base");
        assert_eq!(codes(&mlxcel::plan(&file, base).expect("a plan")), expected, "{config:?}");
    };
    check(Some("{\"model_type\": \"qwen3\"}"), &[Code::UnreachedDonor]);
    check(Some("{"), &[Code::DonorConfig, Code::UnreachedDonor]);
    check(None, &[Code::UnreachedDonor]);
}

#[test]
fn of_a_donor_that_a_part_was_chosen_from_the_rest_is_only_counted() {
    let replace = r"op: replace, pattern: model.layers.0.mlp.up_proj.weight, source: ../models/a.safetensors, source_key: model.layers.1.mlp.up_proj.weight";
    let plan = planned("f16-sharded", replace);
    let told = &plan.diagnostics().last().expect("advice").message;
    assert!(
        told.starts_with("1 of the ") && told.ends_with(" is used") && !told.contains("model."),
        "{told}"
    );
    let add = "op: add, pattern: model.layers.0.mlp.up_proj.weight, source: ../models/a.safetensors";
    let plan = planned("f16-sharded", add);
    let told = &plan.diagnostics().last().expect("advice").message;
    assert!(told.starts_with("no pattern uses ") && told.contains(": `lm_head.weight`"), "{told}");
}

/// Rows of the weight are zeroed in the bias too, so it must have them.
#[test]
fn a_bias_of_another_length_is_refused_for_heads_and_channels() {
    let prune = |granularity: &str, pattern: &str, ids: &str| {
        format!("op: prune, granularity: {granularity}, pattern: '{pattern}', {ids}: [1]")
    };
    let list = "l.0.self_attn.q_proj.weight BF16 8,8\nl.0.self_attn.q_proj.bias BF16 6\nl.0.self_attn.o_proj.weight BF16 8,8\n\
                l.0.mlp.up_proj.weight BF16 6,8\nl.0.mlp.gate_proj.weight BF16 6,8\nl.0.mlp.gate_proj.bias BF16 6,1\n\
                l.0.mlp.down_proj.weight BF16 8,6\n";
    for operation in
        [prune("attention_head", "*attn*", "head_ids"), prune("mlp_channel", "*mlp*", "channel_ids")]
    {
        let dir = tempfile::tempdir().expect("a directory");
        let config = r#"{"model_type": "llama", "num_attention_heads": 2}"#;
        let refusal = plan(&file(&operation), made(dir.path(), config, list)).expect_err("no layout");
        let codes: Vec<Code> = refusal.diagnostics.iter().map(|one| one.code).collect();
        assert_eq!(codes, [Code::UnsupportedLayout], "{operation}");
        assert!(refusal.diagnostics[0].message.contains("bias"), "{}", refusal.diagnostics[0].message);
    }
}

/// Parameters enter in working precision, and may be nothing there.
#[test]
fn what_is_nothing_in_working_precision_is_told_as_it_was_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let says = |operation: &str, dtype: &str| {
        let base = made(dir.path(), r#"{"model_type": "llama"}"#, &format!("m.weight {dtype} 4"));
        let plan = plan(&file(operation), base).expect("a plan");
        plan.diagnostics().iter().map(|one| one.message.clone()).collect::<Vec<_>>()
    };
    let tiny = "op: scale, pattern: m.weight, factor: 1.0000000001";
    assert_eq!(
        says(tiny, "BF16"),
        ["a factor of 1.0000000001 rounds to 1 in the working precision and changes nothing"]
    );
    assert_eq!(says(tiny, "F32"), [""; 0]);
    assert_eq!(says("op: scale, pattern: m.weight, factor: 1.0", "F32"), ["a factor of 1 changes nothing"]);
}
