//! The whole path on a real model: SmolLM2-135M-Instruct, 4 bits, as `cargo xtask smollm2` writes it.
//!
//! `cargo xtask test --real` fetches the model and runs these.

mod serve;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

const MODEL: &str = "models/smollm2-135m-instruct-4bit";
const QUESTION: &str = "What is the capital of France?";

/// Runs the program and gives what it writes to standard output.
#[track_caller]
fn mlxcel(arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(root.join(MODEL).is_dir(), "the model is not there: `cargo xtask smollm2` fetches it");
    let mut program = Command::new(env!("CARGO_BIN_EXE_mlxcel"));
    program.current_dir(root).env_remove("MLXCEL_SURGERY").args(arguments);
    let output = program.output().expect("the program can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("mlxcel prints UTF-8")
}

/// The answer to a question, greedily.
#[track_caller]
fn answer(more: &[&str]) -> String {
    let common = ["generate", "--model", MODEL, "--prompt", QUESTION, "--max-tokens", "20", "--temp", "0"];
    mlxcel(&[&common[..], more].concat())
}

fn surgery(dir: &TempDir, operations: &str) -> String {
    let file = dir.path().join("surgery.yaml");
    fs::write(&file, format!("version: 1\noperations: {operations}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

const WEAKER_ATTENTION: &str = "[{op: scale, pattern: '*.self_attn.o_proj.weight', factor: 0.2}]";

#[test]
fn it_knows_the_capital_of_france() {
    assert_eq!(answer(&[]), "The capital of France is Paris.\n");
}

#[test]
fn no_operations_leave_every_bit_of_the_logits() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    fs::write(&text, "The capital of France is Paris. It lies on the Seine.").unwrap();
    let nothing = surgery(&dir, "[]");
    let logits = |name: &str, more: &[&str]| {
        let out = dir.path().join(name);
        let common =
            ["score", "--model", MODEL, "--text", text.to_str().unwrap(), "--logits", out.to_str().unwrap()];
        mlxcel(&[&common[..], more].concat());
        fs::read(out).unwrap()
    };
    assert!(logits("without", &[]) == logits("with", &["--surgery", &nothing]));
}

#[test]
fn weaker_attention_changes_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let edited = answer(&["--surgery", &surgery(&dir, WEAKER_ATTENTION)]);
    assert_ne!(edited, answer(&[]));
    assert!(edited.trim().len() > 10, "{edited}");
}

#[test]
fn scaling_a_packed_model_touches_no_codes() {
    let dir = tempfile::tempdir().unwrap();
    let file = surgery(&dir, WEAKER_ATTENTION);
    let plan = mlxcel(&["surgery", "plan", &file, "--model", MODEL, "--format", "json"]);
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let edits = plan["operations"][0]["edits"].as_array().unwrap();
    // 30 layers, scales and biases each.
    assert_eq!(edits.len(), 60);
    for edit in edits {
        let tensor = edit["tensor"].as_str().unwrap();
        assert!(tensor.ends_with(".scales") || tensor.ends_with(".biases"), "{tensor}");
        assert_ne!(edit["dtype"], "U32");
    }
}

#[test]
fn a_scaled_answer_says_what_was_done() {
    let dir = tempfile::tempdir().unwrap();
    let file = surgery(&dir, WEAKER_ATTENTION);
    let object: Value = serde_json::from_str(&answer(&["--json", "--surgery", &file])).unwrap();
    assert_eq!(object["surgery"]["tensors_edited"], 60);
    assert_eq!(object["usage"]["prompt_tokens"].as_u64().map(|tokens| tokens > 10), Some(true));
    assert!(object["timings"]["decode_tokens_per_second"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_seed_gives_the_same_answer_again() {
    let sampled = || {
        let common = ["generate", "--model", MODEL, "--prompt", QUESTION, "--max-tokens", "20"];
        mlxcel(&[&common[..], &["--temp", "0.9", "--top-p", "0.95", "--seed", "1"]].concat())
    };
    assert_eq!(sampled(), sampled());
}

#[test]
fn the_greedy_answer_ends_with_the_turn() {
    let object: Value = serde_json::from_str(&answer(&["--json"])).unwrap();
    assert_eq!(object["finish_reason"], "stop");
    assert_eq!(object["text"], "The capital of France is Paris.");
}
