//! End-to-end tests on SmolLM2-135M-Instruct, 4 bits: `cargo xtask test --real` fetches it and runs them.

use std::{path::Path, process::Command};

/// Runs `mlxcel generate` on the question, in the model's chat template, and returns the answer.
#[track_caller]
fn answer(question: &str, options: &[&str]) -> String {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/smollm2-135m-instruct-4bit");
    let output = Command::new(env!("CARGO_BIN_EXE_mlxcel"))
        .args(["generate", "--max-tokens", "20", "--temp", "0", "--prompt", question, "--model"])
        .arg(model)
        .args(options)
        .env_remove("MLXCEL_SURGERY")
        .output()
        .expect("mlxcel starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("mlxcel writes UTF-8")
}

#[test]
fn it_knows_the_capital_of_france() {
    assert_eq!(answer("What is the capital of France?", &[]).trim(), "The capital of France is Paris.");
}
