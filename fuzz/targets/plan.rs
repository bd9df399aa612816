//! A whole plan: a checkpoint, two donors and a surgery file out of one input, planned twice.
//!
//! Input: a byte that picks the base's layout and config, lines that change it (`+ key dtype shape` and `- key` in the
//! base, `a …` and `b …` in the donors `a.safetensors` and `b.safetensors`), a line `%`, and the YAML.

#![no_main]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use mlxcel::internals::checkpoint::byte_length;
use mlxcel::internals::diagnostic::{Look, json, render};
use mlxcel::internals::plan::{Action, Detail, Region, explain, json as plan_json, refuse};
use mlxcel::{Checkpoint, Diagnostic, Plan, Refusal, Severity, SurgeryFile, plan};

/// A tensor's dtype and shape by its key.
type Tensors = BTreeMap<String, (String, Vec<usize>)>;

const LLAMA: &str = r#"{"model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64,
    "intermediate_size": 96, "quantization": {"bits": 4, "group_size": 32}}"#;
const PHI: &str = r#"{"model_type": "phi3", "num_attention_heads": 4, "tie_word_embeddings": false}"#;
const VISION: &str = r#"{"model_type": "gemma3", "vision_config": {}, "text_config": {"model_type": "gemma3_text",
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}}"#;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some((first, rest)) = text.split_at_checked(1) else { return };
    let Some((changes, yaml)) = rest.split_once("\n%\n") else { return };
    let (config, mut base) = layout(first.as_bytes()[0]);
    let mut donors = [base.clone(), base.clone()];
    for line in changes.lines().take(64) {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (what, key, dtype, shape) = (word(), word().to_owned(), word().to_owned(), word());
        let shape = shape.split(',').filter_map(|n| n.parse::<usize>().ok().map(|n| n % 300)).take(4).collect();
        let _ = match what {
            "+" => base.insert(key, (dtype, shape)),
            "-" => base.remove(&key),
            "a" => donors[0].insert(key, (dtype, shape)),
            "b" => donors[1].insert(key, (dtype, shape)),
            _ => None,
        };
    }
    let root = root();
    write(&root.join("base/model.safetensors"), &base);
    write(&root.join("a.safetensors"), &donors[0]);
    write(&root.join("b.safetensors"), &donors[1]);
    fs::write(root.join("base/config.json"), config).expect("a config");

    let file = SurgeryFile::parse(&root.join("surgery.yaml"), yaml.as_bytes());
    let (first, second) = (planned(&file, root), planned(&file, root));
    match (&first, &second) {
        (Ok(first), Ok(second)) => {
            assert_eq!((first.digest(), first.summary()), (second.digest(), second.summary()));
            assert_eq!(first.diagnostics(), second.diagnostics());
            good(first, &file);
        }
        (Err(first), Err(second)) => {
            assert_eq!(first.diagnostics, second.diagnostics);
            assert!(first.diagnostics.iter().any(|one| one.severity() == Severity::Error));
            told(&first.diagnostics, &file);
        }
        _ => panic!("planned once, and refused once"),
    }
});

fn planned(file: &SurgeryFile, root: &Path) -> Result<Plan, Refusal> {
    match Checkpoint::open(&root.join("base")) {
        Ok(base) => plan(file, base),
        Err(errors) => Err(refuse(file, &errors)),
    }
}

/// What holds of every plan.
fn good(plan: &Plan, file: &SurgeryFile) {
    let entries = plan.base().weights.index.entries();
    let mut edits = 0;
    for step in plan.steps() {
        assert!(step.edits.is_sorted_by(|a, b| a.target < b.target), "one edit a tensor, in order");
        assert!(step.skipped <= step.matched);
        edits += step.edits.len();
        for edit in &step.edits {
            if let Action::Zero { region: Region::Slices { axis, ranges } } = &edit.action {
                assert!(ranges.is_sorted_by(|a, b| a.end < b.start) && !ranges.is_empty());
                let end = entries[edit.target].1.shape[*axis];
                assert!(ranges.iter().all(|range| range.start < range.end && range.end <= end));
            }
        }
    }
    assert!(plan.programs().is_sorted_by(|a, b| a.target < b.target));
    assert!(plan.programs().iter().map(|program| program.actions().len()).sum::<usize>() <= edits);
    assert_eq!(plan.digest().is_some(), !plan.programs().is_empty());
    let text = serde_json::to_string(&plan_json(plan)).expect("JSON");
    serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
    let narrow = Look { width: 20, colour: true, unicode: false };
    for (look, all) in [(Look::PLAIN, false), (narrow, true)] {
        let _ = explain(plan, file, look, Detail { all, warnings: true });
    }
    told(plan.diagnostics(), file);
}

fn told(diagnostics: &[Diagnostic], file: &SurgeryFile) {
    for label in diagnostics.iter().flat_map(|one| &one.labels) {
        assert!(file.source.text.get(label.span.clone()).is_some());
    }
    assert_eq!(json(diagnostics, Some(&file.source)).len(), diagnostics.len());
    let _ = render(diagnostics, Some(&file.source), Look::PLAIN);
}

/// A config, and the tensors of a small model.
fn layout(pick: u8) -> (&'static str, Tensors) {
    let mut tensors = Tensors::new();
    let mut add = |key: String, dtype: &str, shape: &[usize]| {
        tensors.insert(key, (dtype.to_owned(), shape.to_vec()));
    };
    let (config, stem) = match pick % 4 {
        0 | 1 => (LLAMA, "model."),
        2 => (PHI, "model."),
        _ => (VISION, "language_model.model."),
    };
    let packed = pick % 4 == 1;
    let mut linear = |path: String, rows: usize, columns: usize| {
        if packed {
            add(format!("{path}.weight"), "U32", &[rows, columns / 8]);
            add(format!("{path}.scales"), "F16", &[rows, columns / 32]);
            add(format!("{path}.biases"), "F16", &[rows, columns / 32]);
        } else {
            add(format!("{path}.weight"), "BF16", &[rows, columns]);
        }
    };
    linear(format!("{stem}embed_tokens"), 32, 64);
    for layer in 0..2 {
        let path = format!("{stem}layers.{layer}");
        if pick % 4 == 2 {
            linear(format!("{path}.self_attn.qkv_proj"), 192, 64);
            linear(format!("{path}.mlp.gate_up_proj"), 192, 64);
        } else {
            linear(format!("{path}.self_attn.q_proj"), 64, 64);
            linear(format!("{path}.self_attn.k_proj"), 32, 64);
            linear(format!("{path}.mlp.up_proj"), 96, 64);
            linear(format!("{path}.mlp.gate_proj"), 96, 64);
        }
        linear(format!("{path}.self_attn.o_proj"), 64, 64);
        linear(format!("{path}.mlp.down_proj"), 64, 96);
    }
    for norm in ["norm.weight", "layers.0.input_layernorm.weight", "layers.1.input_layernorm.weight"] {
        add(format!("{stem}{norm}"), "BF16", &[64]);
    }
    if pick % 4 == 2 {
        add("lm_head.weight".to_owned(), "BF16", &[32, 64]);
    }
    (config, tensors)
}

/// Where files are written; in memory where the system has a place for that.
fn root() -> &'static PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let shared = Path::new("/dev/shm");
        let parent = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let root = parent.join(format!("mlxcel-fuzz-{}", std::process::id()));
        fs::create_dir_all(root.join("base")).expect("a directory");
        root
    })
}

/// A header, and a hole in place of the weights. Tensors of unknown dtypes get some bytes too: they are refused.
fn write(path: &Path, tensors: &Tensors) {
    let mut entries = serde_json::Map::new();
    let mut end = 0;
    for (key, (dtype, shape)) in tensors {
        let known = serde_json::from_value(dtype.as_str().into()).ok();
        let start = end;
        end += known.and_then(|dtype| byte_length(dtype, shape)).unwrap_or(2);
        let entry = serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, end] });
        entries.insert(key.clone(), entry);
    }
    let header = serde_json::Value::from(entries).to_string();
    let mut file = File::create(path).expect("a file");
    let length = header.len() as u64;
    file.write_all(&[&length.to_le_bytes(), header.as_bytes()].concat()).expect("a header");
    file.set_len(8 + length + end).expect("a hole");
}
