//! Vision-language checkpoints: surgery sees the keys that are stored, the text model runs, in every layout.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mlxcel::internals::load::{Options, load};
use mlxcel::{Checkpoint, Code, Diagnostic, Plan};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::families::{check_model, expected, logits, open, operated};
use crate::program::mlxcel;

fn checkpoints() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/conformance/families-vlm");
    let mut found: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert_eq!(found.len(), 6, "{found:?}");
    found
}

/// Layouts: as published, as newer writers have it, as `SmolVLM` has it, as MLX's converter writes it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Layout {
    Published,
    Newer,
    TextModel,
    Converted,
}

/// What a tensor is called in a layout.
fn renamed(key: &str, layout: Layout) -> String {
    let strip = |from: &str| key.strip_prefix(from);
    let other = ["vision_tower.", "visual.", "multi_modal_projector."]
        .into_iter()
        .find(|tower| key.starts_with(tower) || key.starts_with(&format!("model.{tower}")));
    let text = strip("language_model.model.")
        .or_else(|| strip("model.language_model."))
        .or_else(|| strip("model.").filter(|_| other.is_none()));
    let head = strip("language_model.lm_head.").or_else(|| strip("lm_head."));
    match (layout, text, head, other) {
        (Layout::Published, ..) => key.to_owned(),
        (Layout::Newer, Some(rest), ..) => format!("model.language_model.{rest}"),
        (Layout::TextModel, Some(rest), ..) => format!("model.text_model.{rest}"),
        (Layout::Newer | Layout::TextModel, _, Some(rest), _) => format!("lm_head.{rest}"),
        (Layout::Newer | Layout::TextModel, ..) if key.starts_with("model.") => key.to_owned(),
        (Layout::Newer | Layout::TextModel, ..) => format!("model.{key}"),
        (Layout::Converted, Some(rest), ..) => format!("language_model.model.{rest}"),
        (Layout::Converted, _, Some(rest), _) => format!("language_model.lm_head.{rest}"),
        (Layout::Converted, ..) => key.replace("model.", "").replace("visual.", "vision_tower."),
    }
}

/// A copy of a checkpoint with its tensors under other names.
fn relaid(dir: &Path, rename: impl Fn(&str) -> String, change: impl FnOnce(&mut Value)) -> TempDir {
    let bytes = fs::read(dir.join("model.safetensors")).unwrap();
    let stored = SafeTensors::deserialize(&bytes).unwrap();
    let tensors: BTreeMap<String, TensorView<'_>> =
        stored.tensors().into_iter().map(|(key, view)| (rename(&key), view)).collect();
    let copy = tempfile::tempdir().unwrap();
    safetensors::serialize_to_file(tensors, None, &copy.path().join("model.safetensors")).unwrap();
    let mut config: Value = serde_json::from_slice(&fs::read(dir.join("config.json")).unwrap()).unwrap();
    change(&mut config);
    fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
    copy
}

#[test]
fn the_text_model_agrees_in_every_layout() {
    for dir in checkpoints() {
        let wanted = expected(&dir);
        for layout in [Layout::Published, Layout::Newer, Layout::TextModel, Layout::Converted] {
            let copy = relaid(&dir, |key| renamed(key, layout), |_| {});
            let what = format!("{}, {layout:?}", dir.display());
            check_model(&what, open(copy.path()).model.as_ref(), &wanted);
        }
    }
}

#[test]
fn the_text_model_may_have_its_configuration_under_other_names() {
    for dir in checkpoints() {
        for place in ["llm_config", "language_config", "thinker_config"] {
            let move_it = |config: &mut Value| {
                let text = config["text_config"].take();
                config.as_object_mut().unwrap().remove("text_config");
                let text = if place == "thinker_config" { json!({ "text_config": text }) } else { text };
                config[place] = text;
            };
            let copy = relaid(&dir, str::to_owned, move_it);
            let what = format!("{} under {place}", dir.display());
            check_model(&what, open(copy.path()).model.as_ref(), &expected(&dir));
        }
    }
}

/// Before a text model had a part of its own in the configuration, its values stood at the root.
#[test]
fn values_of_the_text_model_may_stand_at_the_root() {
    for dir in checkpoints().iter().filter(|dir| dir.ends_with("qwen2_vl") || dir.ends_with("qwen2_5_vl")) {
        let flat = |config: &mut Value| {
            let Value::Object(mut text) = config["text_config"].take() else { panic!("no text config") };
            text.remove("model_type");
            text.remove("rope_parameters");
            text.insert("rope_theta".to_owned(), json!(1_000_000.0));
            text.insert("rope_scaling".to_owned(), json!({"type": "mrope", "mrope_section": [2, 3, 3]}));
            let root = config.as_object_mut().unwrap();
            root.remove("text_config");
            root.extend(text);
        };
        let copy = relaid(dir, str::to_owned, flat);
        check_model(&dir.display().to_string(), open(copy.path()).model.as_ref(), &expected(dir));
    }
}

#[test]
fn surgery_on_stored_keys_is_seen_by_the_text_model() {
    for dir in checkpoints() {
        for layout in [Layout::Published, Layout::Newer, Layout::TextModel, Layout::Converted] {
            let copy = relaid(&dir, |key| renamed(key, layout), |_| {});
            let bytes = fs::read(copy.path().join("model.safetensors")).unwrap();
            let stored = SafeTensors::deserialize(&bytes).unwrap();
            let is_edited = |key: &&str| key.ends_with("layers.1.mlp.down_proj.weight");
            let key = stored.names().into_iter().find(is_edited).unwrap();
            let yaml = |factor: &str| {
                format!(
                    "version: 1\noperations:\n  - op: scale\n    pattern: '{key}'\n    factor: {factor}\n"
                )
            };
            let tokens = expected(&dir).tokens;
            let logits = |loaded: mlxcel::internals::load::Loaded| logits(loaded.model.as_ref(), &tokens, 64);
            let plain = logits(open(copy.path()));
            assert_ne!(logits(operated(copy.path(), &yaml("3.0"))), plain, "{key}");
            assert_eq!(logits(operated(copy.path(), &yaml("1.0"))), plain, "{key}");
        }
    }
}

#[test]
fn an_edited_embedding_is_the_head_too_where_there_is_no_other() {
    let dir = checkpoints().into_iter().find(|dir| dir.ends_with("gemma3")).unwrap();
    let yaml =
        "version: 1\noperations:\n  - op: scale\n    pattern: '*.embed_tokens.weight'\n    factor: 2.0\n";
    let tokens = expected(&dir).tokens;
    let edited = logits(operated(&dir, yaml).model.as_ref(), &tokens, 64);
    // The same edit of a checkpoint that stores its head, both edited.
    let copy = relaid(&dir, str::to_owned, |_| {});
    let bytes = fs::read(copy.path().join("model.safetensors")).unwrap();
    let stored = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: BTreeMap<String, TensorView<'_>> = stored.tensors().into_iter().collect();
    let embedding = tensors["language_model.model.embed_tokens.weight"].clone();
    tensors.insert("language_model.lm_head.weight".to_owned(), embedding);
    let other = tempfile::tempdir().unwrap();
    safetensors::serialize_to_file(tensors, None, &other.path().join("model.safetensors")).unwrap();
    fs::copy(dir.join("config.json"), other.path().join("config.json")).unwrap();
    let both = yaml.replace("*.embed_tokens.weight", "{*.embed_tokens.weight,*.lm_head.weight}");
    assert_eq!(logits(operated(other.path(), &both).model.as_ref(), &tokens, 64), edited);
    assert_ne!(logits(operated(other.path(), yaml).model.as_ref(), &tokens, 64), edited);
}

#[test]
fn two_layouts_in_one_checkpoint_are_refused() {
    let dir = checkpoints().into_iter().find(|dir| dir.ends_with("llava")).unwrap();
    let rename = |key: &str| match key {
        "multi_modal_projector.linear_1.bias" => "model.language_model.norm.weight".to_owned(),
        other => other.to_owned(),
    };
    let copy = relaid(&dir, rename, |_| {});
    let plan = Plan::identity(Checkpoint::open(copy.path()).unwrap());
    let found = load(plan, Options::default(), &mut |_| {}).map(|_| ()).unwrap_err();
    let found = Diagnostic::from(&found);
    assert_eq!(found.code, Code::ModelUnreadable);
    for name in ["`language_model.model.norm.weight`", "`model.language_model.norm.weight`"] {
        assert!(found.message.contains(name), "{found:?}");
    }
}

#[test]
fn what_is_missing_is_named_as_the_checkpoint_would() {
    let dir = checkpoints().into_iter().find(|dir| dir.ends_with("mistral3")).unwrap();
    let wrong = |config: &mut Value| config["text_config"]["intermediate_size"] = json!(97);
    let copy = relaid(&dir, str::to_owned, wrong);
    let plan = Plan::identity(Checkpoint::open(copy.path()).unwrap());
    let found = load(plan, Options::default(), &mut |_| {}).map(|_| ()).unwrap_err();
    assert!(found.to_string().contains("`language_model.model.layers.0.mlp.gate_proj.weight`"), "{found:?}");
}

#[test]
fn keys_are_listed_with_the_names_that_the_text_model_has_for_them() {
    let dir = checkpoints().into_iter().find(|dir| dir.ends_with("gemma3")).unwrap();
    let patterns = "{language_model.model.norm.weight,multi_modal_projector.mm_soft_emb_norm.weight}";
    let text = mlxcel(&dir, &format!("surgery keys --model . {patterns}"));
    assert_eq!(
        text.stdout,
        "language_model.model.norm.weight                 f32 [64]  norm  loaded as model.norm.weight\n\
         multi_modal_projector.mm_soft_emb_norm.weight    f32 [1]  norm\n"
    );
    let json = mlxcel(&dir, &format!("surgery keys --model . --format json {patterns}")).json();
    assert_eq!(json["keys"][0]["loaded_as"], "model.norm.weight");
    assert_eq!(json["keys"][1].get("loaded_as"), None);
}
