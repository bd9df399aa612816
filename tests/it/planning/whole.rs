//! Whole models that are added as if they were differences: advice, and no more.

use std::fs;
use std::path::Path;

use crate::program::mlxcel;

const ADVICE: &str = "donor `tuned` looks like a whole model rather than a difference";

/// The small models of the repository, and a task vector.
fn stage() -> tempfile::TempDir {
    let stage = tempfile::tempdir().expect("a temporary directory");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales");
    for name in ["base", "tuned", "base-bf16", "task_vector.safetensors"] {
        std::os::unix::fs::symlink(models.join(name), stage.path().join(name)).expect("a link");
    }
    stage
}

/// How often a plan on a model has the advice; it is there and its exit code is 0 either way.
#[track_caller]
fn advised(stage: &tempfile::TempDir, model: &str, operations: &[&str]) -> usize {
    let operations: Vec<String> = operations.iter().map(|operation| format!("{{{operation}}}")).collect();
    let yaml = format!("version: 1\noperations: [{}]\n", operations.join(", "));
    fs::write(stage.path().join("surgery.yaml"), yaml).expect("a file");
    let arguments = format!("surgery plan surgery.yaml --model {model} --deny warnings --json");
    let run = mlxcel(stage.path(), &arguments);
    assert_eq!(run.code, 0, "{run:#?}");
    let json = run.json();
    let found = json["diagnostics"].as_array().expect("a list").iter();
    let found = found.filter(|one| one["code"] == "surgery::whole_model");
    found.inspect(|one| assert_eq!(one["severity"], "advice")).count()
}

#[test]
fn a_whole_model_that_is_added_is_advised_of_once() {
    let stage = stage();
    for operations in [
        &["op: add, pattern: '*', source: tuned"][..],
        &["op: add, pattern: '*.down_proj.weight', source: tuned/model.safetensors, alpha: 0.3"],
        &["op: scale, pattern: '*', factor: 2", "op: add, pattern: '*', source: tuned, alpha: -0.5"],
        &["op: add, pattern: '*mlp*', source: tuned", "op: add, pattern: '*attn*', source: tuned"],
        // What made it a difference elsewhere does not do so here.
        &["op: add, pattern: '*', source: tuned", "op: add, pattern: '*mlp*', source: base, alpha: -1"],
    ] {
        assert_eq!(advised(&stage, "base", operations), 1, "{operations:?}");
    }
    let text = mlxcel(stage.path(), "surgery plan surgery.yaml --model base").stdout;
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(ADVICE) && said.contains("(whole_model)"), "{text}");
    let check = mlxcel(stage.path(), "surgery check surgery.yaml --model base --deny warnings");
    assert!(check.code == 0 && check.stdout.contains("whole_model"), "{check:#?}");
}

#[test]
fn differences_and_means_are_not() {
    let stage = stage();
    for operations in [
        &["op: add, pattern: '*', source: task_vector.safetensors"][..],
        // A difference of two models, and a mean of them.
        &[
            "op: add, pattern: '*', source: tuned, alpha: 0.7",
            "op: add, pattern: '*', source: base/model.safetensors, alpha: -0.7",
        ],
        &["op: scale, pattern: '*', factor: 0.6", "op: add, pattern: '*', source: tuned, alpha: 0.4"],
        &["op: add, pattern: '*', source: tuned, alpha: 0.5", "op: scale, pattern: '*', factor: 0.6666667"],
        // Nothing is left of what was added, or nothing was.
        &[
            "op: add, pattern: 'model.norm.weight', source: tuned",
            "op: replace, pattern: 'model.norm.weight', source: tuned, source_key: model.norm.weight",
        ],
        &["op: add, pattern: '*', source: tuned, alpha: 0"],
        &["op: interpolate, pattern: '*', source_a: base, source_b: tuned, ratio: 0.5, method: lerp"],
    ] {
        assert_eq!(advised(&stage, "base", operations), 0, "{operations:?}");
    }
    // The dtype differs from the base's, as that of stored differences may.
    assert_eq!(advised(&stage, "base-bf16", &["op: add, pattern: '*', source: tuned"]), 0);
    // Every tensor, and no configuration.
    fs::create_dir(stage.path().join("deltas")).expect("a directory");
    fs::copy(stage.path().join("tuned/model.safetensors"), stage.path().join("deltas/model.safetensors"))
        .expect("a copy");
    assert_eq!(advised(&stage, "base", &["op: add, pattern: '*', source: deltas"]), 0);
}
