use super::super::testing::{Dir, bytes};
use super::super::{Checkpoint, ReadErrorKind};
use super::{MAX_VALUES, ModelConfig};

#[track_caller]
fn parse(text: &str) -> ModelConfig {
    ModelConfig::parse(text).unwrap_or_else(|reason| panic!("{reason}: {text}"))
}

/// Heads, KV heads, head size.
#[track_caller]
fn check(text: &str, expected: (u64, u64, Option<u64>)) {
    let config = parse(text);
    assert_eq!(
        (config.heads, config.kv_heads, config.head_dim),
        (Some(expected.0), Some(expected.1), expected.2)
    );
}

#[test]
fn values_are_found_where_families_keep_them() {
    let heads = r#""num_attention_heads":16,"num_key_value_heads":2,"head_dim":128"#;
    for place in [
        format!("{{{heads}}}"),
        format!(r#"{{"text_config":{{{heads}}}}}"#),
        format!(r#"{{"llm_config":{{{heads}}}}}"#),
        format!(r#"{{"language_config":{{{heads}}}}}"#),
        format!(r#"{{"thinker_config":{{"text_config":{{{heads}}}}}}}"#),
    ] {
        check(&place, (16, 2, Some(128)));
    }
}

#[test]
fn the_root_goes_before_the_text_config() {
    check(
        r#"{"num_attention_heads":8,"text_config":{"num_attention_heads":4,"num_key_value_heads":2}}"#,
        (8, 2, None),
    );
}

#[test]
fn null_is_missing_and_zero_is_nothing_to_plan_by() {
    check(
        r#"{"num_attention_heads":null,"head_dim":null,"text_config":{"num_attention_heads":4}}"#,
        (4, 4, None),
    );
    for wrong in ["0", "-1", "4.0", "\"4\"", "true", "[4]"] {
        let config = parse(&format!(r#"{{"model_type":"llama","num_attention_heads":{wrong}}}"#));
        assert_eq!((config.heads, config.kv_heads), (None, None), "{wrong}");
    }
    for wrong in ["null", "0", "false", "\"none\"", "[]"] {
        assert!(!parse(&format!(r#"{{"vision_config":{wrong}}}"#)).is_vision_language, "{wrong}");
    }
    assert!(parse(r#"{"vision_config":{}}"#).is_vision_language);
    assert_eq!(parse(r#"{"tie_word_embeddings":null}"#).tied_embeddings, None);
}

#[test]
fn missing_counts_are_the_model_types() {
    // A published 4-bit Gemma 3 has no more than this.
    let gemma = r#"{"model_type":"gemma3","vision_config":{"a":1},
        "text_config":{"hidden_size":2560,"model_type":"gemma3_text","num_hidden_layers":34}}"#;
    check(gemma, (8, 4, Some(256)));
    assert_eq!(parse(gemma).text_model_type(), "gemma3_text");
    check(r#"{"model_type":"llava","text_config":{"model_type":"llama"}}"#, (32, 32, None));
    check(r#"{"model_type":"mistral"}"#, (32, 8, None));
    check(r#"{"model_type":"llama","num_attention_heads":9}"#, (9, 9, None));
    assert_eq!(parse(r#"{"model_type":"unheard_of"}"#).heads, None);
}

#[test]
fn ties_are_said_at_the_root_or_in_the_text_config() {
    assert_eq!(parse(r#"{"text_config":{"tie_word_embeddings":false}}"#).tied_embeddings, Some(false));
    assert_eq!(
        parse(r#"{"tie_word_embeddings":true,"text_config":{"tie_word_embeddings":false}}"#).tied_embeddings,
        Some(true)
    );
}

#[test]
fn quantization_is_read_with_its_overrides() {
    let config = parse(
        r#"{"quantization":{"group_size":64,"bits":4,"mode":"affine",
            "model.a":{"bits":8,"group_size":32},"model.b.weight":{"bits":6},"model.c":false,"model.d":true,
            "model.e":{"mode":"mxfp4","bits":4,"group_size":32}},
            "quantization_config":{"bits":3}}"#,
    );
    let quantization = config.quantization.unwrap();
    let format = |module: &str| quantization.format_of(module).map(|format| (format.bits, format.group_size));
    assert_eq!(format("model.a"), Some((8, 32)));
    assert_eq!(format("model.b"), Some((6, 64)));
    assert_eq!(format("model.c"), None);
    assert_eq!(format("model.d"), Some((4, 64)));
    assert_eq!(format("any.other"), Some((4, 64)));
    assert_eq!(
        (quantization.mode_of("model.e"), quantization.mode_of("model.a")),
        (Some("mxfp4"), Some("affine"))
    );
}

#[test]
fn foreign_methods_are_named() {
    let mode = |text: &str| parse(text).quantization.unwrap().mode.unwrap();
    assert_eq!(mode(r#"{"quantization_config":{"quant_method":"awq","bits":4,"group_size":128}}"#), "awq");
    assert_eq!(mode(r#"{"text_config":{"quantization_config":{"quant_method":"FP8"}}}"#), "fp8");
    let compressed =
        r#"{"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"a":{"bits":4}}}}"#;
    assert!(parse(compressed).quantization.unwrap().overrides.is_empty());
}

#[test]
fn a_config_is_an_object() {
    let refused = |text: &str| ModelConfig::parse(text).unwrap_err();
    assert_eq!(refused("[]"), "a JSON list, not an object");
    assert_eq!(refused("7"), "a JSON value, not an object");
    assert_eq!(refused(" \n"), "empty");
    assert_eq!(refused("{"), "not JSON: EOF while parsing an object at line 1 column 1");
    assert!(refused(&"[".repeat(1_000_000)).starts_with("not JSON: recursion limit exceeded"));
}

#[test]
fn a_byte_order_mark_is_dropped() {
    let dir = Dir::new().with("config.json", "\u{feff}{\"model_type\":\"llama\"}");
    assert_eq!(ModelConfig::read(&dir.join("config.json")).unwrap().model_type, "llama");
}

#[track_caller]
fn refused(dir: &Dir, kind: ReadErrorKind, file: &str, reason: &str) {
    let errors = Checkpoint::open(dir.path()).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    let path = if file.is_empty() { dir.path().to_owned() } else { dir.join(file) };
    assert_eq!((errors[0].kind, &errors[0].path, errors[0].reason.as_str()), (kind, &path, reason));
    assert!(errors[0].help.is_some());
}

#[test]
fn a_model_directory_has_config_and_weights() {
    let dir = Dir::new().with("model.safetensors", bytes(&["x"]));
    refused(&dir, ReadErrorKind::NotFound, "config.json", "no such file or directory");
    let dir = dir.with("config.json", "[1]");
    refused(&dir, ReadErrorKind::Unreadable, "config.json", "a JSON list, not an object");
    let dir = dir.with("config.json", "\u{0}\u{1}");
    refused(&dir, ReadErrorKind::Unreadable, "config.json", "not JSON: expected value at line 1 column 1");
    let dir = dir.with("config.json", b"\xff\xfe");
    refused(&dir, ReadErrorKind::Unreadable, "config.json", "not UTF-8 text");
    assert!(Checkpoint::open(dir.with("config.json", "{}").path()).is_ok());

    let empty = Dir::new();
    refused(&empty, ReadErrorKind::Unreadable, "", "no safetensors weights in this directory");
}

#[test]
fn a_file_is_not_a_model_directory() {
    let open = |dir: &Dir, name: &str| Checkpoint::open(&dir.join(name)).unwrap_err()[0].reason.clone();
    let dir = Dir::new().with("a.safetensors", bytes(&["x"])).with("m.gguf", "GGUF\u{3}\0\0\0\0\0\0\0");
    assert_eq!(open(&dir, "a.safetensors"), "a file of weights, not a model directory");
    assert_eq!(open(&dir, "m.gguf"), "not a model directory: a GGUF file, which is not safetensors");
    assert_eq!(open(&dir, "missing"), "no such file or directory");
}

#[test]
fn a_configuration_is_not_read_beyond_what_models_need() {
    let list = |values: usize| format!("{{\"a\": [{}0]}}", "0,".repeat(values - 1));
    assert!(ModelConfig::parse(&list(MAX_VALUES)).is_ok());
    let refused = ModelConfig::parse(&list(MAX_VALUES + 2)).unwrap_err();
    assert!(refused.starts_with("holds more than 500000 values"), "{refused}");
}
