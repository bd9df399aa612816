//! The one door, from outside: what does not fit is refused before anything is read, in one diagnostic that names the
//! tensor; what fits is loaded with surgery, ties kept or broken as the plan says, in the dtype that was asked for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mlxcel::internals::load::{LoadError, Loaded, Options, load};
use mlxcel::internals::model::run;
use mlxcel::internals::weights::{Precision, Progress};
use mlxcel::{Checkpoint, Code, Diagnostic, Plan, SurgeryFile, plan};
use safetensors::{Dtype, SafeTensors, View};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A checkpoint to be spoilt.
struct Spoilt {
    config: Value,
    tensors: BTreeMap<String, Tensor>,
}

#[derive(Clone)]
struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Vec<u8>,
}

impl View for Tensor {
    fn dtype(&self) -> Dtype {
        self.dtype
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.data)
    }
    fn data_len(&self) -> usize {
        self.data.len()
    }
}

fn family(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/conformance/families").join(name)
}

impl Spoilt {
    fn new(name: &str) -> Self {
        let config = std::fs::read(family(name).join("config.json")).unwrap();
        let bytes = std::fs::read(family(name).join("model.safetensors")).unwrap();
        let stored = SafeTensors::deserialize(&bytes).unwrap();
        let tensor = |(key, view): (String, safetensors::tensor::TensorView<'_>)| {
            let (dtype, shape, data) = (view.dtype(), view.shape().to_vec(), view.data().to_vec());
            (key, Tensor { dtype, shape, data })
        };
        Self {
            config: serde_json::from_slice(&config).unwrap(),
            tensors: stored.tensors().into_iter().map(tensor).collect(),
        }
    }

    fn config(mut self, name: &str, value: Value) -> Self {
        self.config[name] = value;
        self
    }

    fn without(mut self, key: &str) -> Self {
        self.tensors.remove(key).unwrap();
        self
    }

    fn with(mut self, key: &str, like: &str) -> Self {
        let tensor = self.tensors[like].clone();
        self.tensors.insert(key.to_owned(), tensor);
        self
    }

    fn write(&self) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.json"), self.config.to_string()).unwrap();
        let file = dir.path().join("model.safetensors");
        safetensors::serialize_to_file(self.tensors.clone(), None, &file).unwrap();
        dir
    }

    fn load(&self) -> Result<Loaded, LoadError> {
        let dir = self.write();
        open(dir.path(), Precision::Auto)
    }
}

fn open(dir: &Path, precision: Precision) -> Result<Loaded, LoadError> {
    load(Plan::identity(Checkpoint::open(dir).unwrap()), Options { precision }, &mut |_| {})
}

fn operated(dir: &Path, yaml: &str) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("surgery.yaml");
    std::fs::write(&path, yaml).unwrap();
    let plan = plan(&SurgeryFile::read(&path), Checkpoint::open(dir).unwrap()).unwrap();
    load(plan, Options::default(), &mut |_| {}).unwrap()
}

/// Logits of a fixed text.
fn logits(loaded: &Loaded) -> Vec<f32> {
    let mut all = Vec::new();
    let tokens: Vec<u32> = (0..40).map(|i| (i * 29 + 3) % 128).collect();
    let mut cache = loaded.model.cache();
    let each = |_, piece: &[f32]| {
        all.extend_from_slice(piece);
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    run::score(loaded.model.as_ref(), &mut cache, &tokens, 256, each).unwrap();
    all
}

#[track_caller]
fn check(spoilt: &Spoilt, code: Code, mentions: &[&str]) {
    let found = spoilt.load().map(|_| ()).unwrap_err();
    let diagnostic = Diagnostic::from(&found);
    assert_eq!(diagnostic.code, code, "{diagnostic:#?}");
    for mention in mentions {
        assert!(diagnostic.message.contains(mention), "no {mention} in {}", diagnostic.message);
    }
}

#[test]
fn a_missing_tensor_is_named() {
    let key = "model.layers.1.mlp.up_proj.weight";
    check(&Spoilt::new("llama").without(key), Code::TensorMissing, &[key]);
    check(&Spoilt::new("llama").without("lm_head.weight"), Code::TensorMissing, &["lm_head.weight"]);
    check(&Spoilt::new("llama").without("model.norm.weight"), Code::TensorMissing, &["model.norm.weight"]);
}

#[test]
fn a_tensor_that_no_part_takes_is_named() {
    let norm = "model.norm.weight";
    let spoilt = Spoilt::new("llama").with("model.layers.7.input_layernorm.weight", norm);
    check(&spoilt, Code::TensorLeftOver, &["model.layers.7.input_layernorm.weight"]);
    let spoilt = Spoilt::new("llama").with("model.layers.0.self_attn.q_proj.bias", norm);
    check(&spoilt, Code::TensorLeftOver, &["q_proj.bias"]);
    let spoilt = Spoilt::new("llama").config("num_hidden_layers", json!(2));
    check(&spoilt, Code::TensorLeftOver, &["model.layers.2.", "8 other tensors"]);
}

#[test]
fn tensors_that_old_writers_leave_behind_are_ignored() {
    let key = "model.layers.0.self_attn.rotary_emb.inv_freq";
    assert!(Spoilt::new("llama").with(key, "model.norm.weight").load().is_ok());
}

#[test]
fn sizes_that_disagree_with_tensors_name_the_first_of_them() {
    let check = |name: &str, value: Value, mention: &str| {
        check(&Spoilt::new("llama").config(name, value), Code::ModelUnreadable, &[mention]);
    };
    check("num_attention_heads", json!(8), "model.layers.0.self_attn.q_proj.weight");
    check("num_key_value_heads", json!(4), "model.layers.0.self_attn.k_proj.weight");
    check("head_dim", json!(32), "model.layers.0.self_attn.q_proj.weight");
    check("intermediate_size", json!(64), "model.layers.0.mlp.gate_proj.weight");
    check("vocab_size", json!(127), "model.embed_tokens.weight");
    check("hidden_size", json!(128), "model.embed_tokens.weight");
}

#[test]
fn a_configuration_without_a_needed_value_names_the_value() {
    for name in ["num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size"] {
        for spoilt in [Value::Null, json!(0), json!(-3), json!("many"), json!(1.5), json!(1_u64 << 40)] {
            check(&Spoilt::new("llama").config(name, spoilt), Code::ModelUnreadable, &[name]);
        }
    }
    let check = |name: &str, value: Value, mention: &str| {
        check(&Spoilt::new("mistral").config(name, value), Code::ModelUnreadable, &[mention]);
    };
    check("num_key_value_heads", json!(3), "4 heads cannot share 3");
    check("head_dim", json!(15), "odd");
    check("rms_norm_eps", json!("small"), "rms_norm_eps");
    check("attention_bias", json!(1), "attention_bias");
    check("sliding_window", json!("wide"), "sliding_window");
    check("rope_parameters", json!([1]), "rope_parameters");
    check("rope_parameters", json!({"rope_theta": 0}), "rope_theta");
    check("rope_parameters", json!({"rope_type": "llama3", "factor": 8}), "low_freq_factor");
    check("layer_types", json!(["full_attention"]), "layer_types");
}

#[test]
fn what_no_family_answers_to_is_unsupported() {
    let check = |name: &str, value: Value, mention: &str| {
        check(&Spoilt::new("llama").config(name, value), Code::UnsupportedModel, &[mention]);
    };
    check("model_type", json!("lama"), "`lama`");
    check("hidden_act", json!("gelu"), "`gelu`");
    check("rope_parameters", json!({"rope_type": "spiral"}), "`spiral`");
}

#[test]
fn affine_sets_that_do_not_hold_together_are_refused() {
    let module = "model.layers.0.mlp.up_proj";
    let spoilt = Spoilt::new("llama-4bit").without(&format!("{module}.biases"));
    check(&spoilt, Code::UnsupportedQuantization, &[module]);
    let mut spoilt = Spoilt::new("llama-4bit");
    spoilt.tensors.get_mut(&format!("{module}.scales")).unwrap().shape.reverse();
    check(&spoilt, Code::IncompleteAffineSet, &[module]);
    let quantized = json!({"quant_method": "awq", "bits": 4});
    let spoilt = Spoilt::new("llama").config("quantization_config", quantized);
    check(&spoilt, Code::UnsupportedQuantization, &["awq"]);
}

#[test]
fn an_edit_of_one_side_of_a_tie_leaves_the_other_alone() {
    let dir = family("llama-tied-rope3");
    let plain = logits(&open(&dir, Precision::Auto).unwrap());
    let scaled = |pattern: &str, factor: f64| {
        let yaml =
            format!("version: 1\noperations:\n  - {{op: scale, pattern: '{pattern}', factor: {factor}}}\n");
        logits(&operated(&dir, &yaml))
    };
    // Twice the head gives twice the logits, exactly; the embedding is then still the stored one.
    let doubled: Vec<f32> = plain.iter().map(|x| x * 2.0).collect();
    assert_eq!(scaled("lm_head.weight", 2.0), doubled);
    assert_ne!(scaled("model.embed_tokens.weight", 2.0), plain);
    assert_ne!(scaled("{lm_head,model.embed_tokens}.weight", 2.0), doubled);
}

#[test]
fn every_dtype_computes_about_the_same() {
    for name in ["llama", "llama-4bit"] {
        let reference = logits(&open(&family(name), Precision::F32).unwrap());
        let largest = reference.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        for (precision, tolerance) in
            [(Precision::Native, 1e-3), (Precision::F16, 2e-2), (Precision::Bf16, 1e-1)]
        {
            let found = logits(&open(&family(name), precision).unwrap());
            let worst = found.iter().zip(&reference).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
            assert!(worst <= tolerance * largest, "{name} {precision:?}: {worst} of {largest}");
        }
    }
}

#[test]
fn progress_ends_where_it_said_it_would() {
    for (dir, yaml) in [
        (family("llama"), "version: 1\noperations: []\n"),
        (
            family("llama-4bit"),
            "version: 1\noperations:\n  - {op: scale, pattern: '*o_proj*', factor: 0.5}\n",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("surgery.yaml");
        std::fs::write(&path, yaml).unwrap();
        let plan = plan(&SurgeryFile::read(&path), Checkpoint::open(&dir).unwrap()).unwrap();
        let edited = plan.programs().len();
        let mut seen: Vec<Progress> = Vec::new();
        load(plan, Options::default(), &mut |progress| seen.push(progress)).unwrap();
        assert!(seen.is_sorted_by_key(|progress| progress.done));
        let last = seen.last().unwrap();
        assert_eq!((last.done, last.operating), (last.total, None));
        // Every tensor of the surgery is announced before it is computed.
        let operating: Vec<_> = seen.iter().filter_map(|progress| progress.operating).collect();
        assert_eq!(operating, (1..=edited).map(|number| (number, edited)).collect::<Vec<_>>());
    }
}

#[test]
fn a_loaded_model_computes_on_another_thread() {
    let loaded = open(&family("llama"), Precision::Auto).unwrap();
    let here = logits(&loaded);
    let there = std::thread::spawn(move || logits(&loaded)).join().unwrap();
    assert_eq!(here, there);
}

#[test]
fn a_forgotten_continuation_leaves_no_trace() {
    let loaded = open(&family("mistral"), Precision::Auto).unwrap();
    let model = loaded.model.as_ref();
    let run = |cache: &mut _, tokens: &[u32]| {
        let go_on = |_| std::ops::ControlFlow::Continue(());
        run::prefill(model, cache, tokens, 256, go_on).unwrap().unwrap().values().unwrap()
    };
    let (beginning, one, other): (Vec<u32>, [u32; 3], [u32; 3]) =
        ((1..30).collect(), [5, 6, 7], [90, 91, 92]);
    let mut cache = model.cache();
    run(&mut cache, &beginning);
    let first = run(&mut cache, &one);
    assert!(cache.truncate(beginning.len()));
    run(&mut cache, &other);
    assert!(cache.truncate(beginning.len()));
    assert_eq!(run(&mut cache, &one), first);
    assert_eq!(cache.len(), beginning.len() + one.len());
}

#[test]
fn a_token_beyond_the_vocabulary_is_an_error() {
    let loaded = open(&family("llama"), Precision::Auto).unwrap();
    let model = loaded.model.as_ref();
    let go_on = |_| std::ops::ControlFlow::Continue(());
    let error = run::prefill(model, &mut model.cache(), &[1, 128], 256, go_on).unwrap_err();
    assert_eq!(error.to_string(), "token 128 is beyond the model's 128");
    assert!(run::step(model, &mut model.cache(), &run::Tokens::new(&[u32::MAX]).unwrap()).is_err());
}

fn all_families() -> Vec<String> {
    let folder = family("llama").with_file_name("");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn every_family_names_a_tensor_that_is_missing() {
    for name in all_families() {
        let whole = Spoilt::new(&name);
        // One layer stands for all; what is outside of layers is checked too.
        let is_checked = |key: &&String| !key.contains(".layers.") || key.contains(".layers.1.");
        for key in whole.tensors.keys().filter(is_checked) {
            let spoilt = Spoilt::new(&name).without(key);
            let (module, member) = key.rsplit_once('.').unwrap();
            match member {
                // Without its scales a weight in codes is one of integers.
                "scales" => check(&spoilt, Code::ModelUnreadable, &[module]),
                "biases" => check(&spoilt, Code::UnsupportedQuantization, &[module]),
                _ => check(&spoilt, Code::TensorMissing, &[key]),
            }
        }
    }
}

#[test]
fn every_family_names_a_tensor_that_is_left_over() {
    for name in all_families() {
        for key in
            ["model.layers.1.self_attn.extra.weight", "model.layers.99.input_layernorm.weight", "extra.bias"]
        {
            check(&Spoilt::new(&name).with(key, "model.norm.weight"), Code::TensorLeftOver, &[key]);
        }
    }
}

#[test]
fn every_family_names_a_tensor_that_head_counts_disagree_with() {
    for name in all_families() {
        let spoilt = Spoilt::new(&name).config("num_attention_heads", json!(8));
        let code = if name.ends_with("-4bit") { Code::IncompleteAffineSet } else { Code::ModelUnreadable };
        check(&spoilt, code, &["model.layers.0.self_attn."]);
    }
}

#[test]
fn every_family_names_a_tensor_that_its_index_makes_up() {
    for name in all_families() {
        let spoilt = Spoilt::new(&name);
        let dir = spoilt.write();
        let mut listed: BTreeMap<&str, &str> =
            spoilt.tensors.keys().map(|key| (key.as_str(), "model.safetensors")).collect();
        listed.insert("model.layers.7.ghost.weight", "model.safetensors");
        let index = json!({"weight_map": listed}).to_string();
        std::fs::write(dir.path().join("model.safetensors.index.json"), index).unwrap();
        let errors = Checkpoint::open(dir.path()).unwrap_err();
        let [error] = &errors[..] else { panic!("{errors:?}") };
        assert!(error.to_string().contains("model.layers.7.ghost.weight"), "{error}");
    }
}
