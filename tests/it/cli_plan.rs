//! `mlxcel surgery plan`.

use std::io::Read as _;
use std::process::Stdio;

use crate::fixture::Fixture;
use crate::program::{command, ended, mlxcel};
use crate::sparse;

const SCALE: &str = "version: 1\noperations:\n- op: scale\n  pattern: '*.o_proj.weight'\n  factor: 0.5\n";
/// Only one side of a tied embedding: a warning.
const WARNS: &str = "version: 1\noperations:\n- op: scale\n  pattern: lm_head.weight\n  factor: 0.5\n";
/// An advice.
const ADVISES: &str = "version: 1\noperations:\n- op: scale\n  pattern: model.norm.weight\n  factor: 1\n";

#[track_caller]
fn check_code(yaml: &str, arguments: &str, code: i32) {
    let stage = Fixture::new("llama-3.2-1b", yaml);
    let run = mlxcel(stage.dir(), &format!("surgery plan surgery.yaml --model model {arguments}"));
    assert_eq!(run.code, code, "{run:#?}");
}

#[test]
fn a_plan_ends_with_0_and_mistakes_with_1() {
    check_code(SCALE, "", 0);
    check_code(SCALE, "--format json", 0);
    check_code("version: 2\n", "", 1);
    check_code("version: 2\n", "--format json", 1);
    check_code("operations: [", "", 1);
}

#[test]
fn deny_warnings_counts_warnings_and_not_advice() {
    check_code(WARNS, "", 0);
    check_code(WARNS, "--deny warnings", 1);
    check_code(WARNS, "--deny warnings --format json", 1);
    check_code(ADVISES, "--deny warnings", 0);
    let stage = Fixture::new("llama-3.2-1b", WARNS);
    let plan = |options: &str| {
        mlxcel(stage.dir(), &format!("surgery plan surgery.yaml --model model{options}")).stderr
    };
    assert!(plan(" --deny warnings").ends_with("warnings are errors because of `--deny warnings`\n"));
    assert!(!plan("").contains("denied"));
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for arguments in [
        "",
        "surgery",
        "surgery plan",
        "surgery plan x.yaml",
        "surgery plan x.yaml --model m --format sarif",
        "surgery plan x.yaml --model m --deny advice",
        "surgery check",
        "surgery keys",
        "surgery explain nothing_of_the_kind",
        "completions nothing_of_the_kind",
        "man nothing_of_the_kind",
        "generate",
    ] {
        let run = mlxcel(dir.path(), arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments}: {run:#?}");
    }
}

#[test]
fn what_is_missing_or_unreadable_is_a_mistake_and_named() {
    let stage = Fixture::new("llama-3.2-1b", SCALE);
    for (arguments, name) in
        [("nowhere.yaml --model model", "nowhere.yaml"), ("surgery.yaml --model nowhere", "nowhere")]
    {
        let run = mlxcel(stage.dir(), &format!("surgery plan {arguments}"));
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{arguments}");
        assert!(run.stderr.contains(name), "{arguments}: {}", run.stderr);
    }
}

#[test]
fn the_plan_is_on_standard_output_and_a_warning_in_full_on_standard_error() {
    let stage = Fixture::new("llama-3.2-1b", WARNS);
    let run = mlxcel(stage.dir(), "surgery plan surgery.yaml --model model");
    assert!(run.stdout.starts_with("surgery.yaml  on  model  (146 tensors, 2.47 GB)\n"), "{}", run.stdout);
    assert!(run.stdout.contains("       warning  "), "{}", run.stdout);
    assert!(run.stderr.contains("surgery::tied_embedding"), "{}", run.stderr);
    assert!(run.stderr.contains("surgery.yaml:4"), "{}", run.stderr);
}

#[test]
fn json_is_one_object_with_fields_in_a_fixed_order() {
    let stage = Fixture::new("llama-3.2-1b", WARNS);
    let run = mlxcel(stage.dir(), "surgery plan surgery.yaml --model model --format json");
    assert_eq!(run.stderr, "");
    let plan = run.json();
    let fields = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };
    assert_eq!(
        fields(&plan),
        ["format_version", "file", "model", "digest", "operations", "summary", "diagnostics"]
    );
    assert_eq!(plan["format_version"], "1.0");
    assert_eq!((&plan["file"], &plan["model"]), (&"surgery.yaml".into(), &"model".into()));
    let digest = plan["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:")).expect("a digest");
    assert_eq!(digest.len(), 64);
    let operation = &plan["operations"][0];
    assert_eq!(fields(operation), ["index", "op", "line", "matched", "skipped", "edits"]);
    assert_eq!(
        operation["edits"],
        serde_json::json!([{
            "tensor": "lm_head.weight",
            "dtype": "BF16",
            "shape": [128_256, 2048],
            "action": { "kind": "scale", "factor": 0.5 },
        }])
    );
    assert_eq!(
        fields(&plan["summary"]),
        ["operations", "tensors_edited", "base_bytes", "donor_bytes", "result_bytes", "peak_extra_bytes"]
    );
    assert_eq!(fields(&plan["diagnostics"][0]), ["code", "severity", "message", "help", "labels"]);
}

#[test]
fn json_of_a_refused_file_has_no_plan() {
    let stage =
        Fixture::new("llama-3.2-1b", "version: 1\noperations:\n- op: scale\n  pattern: x.*\n  factor: 2\n");
    let run = mlxcel(stage.dir(), "surgery plan surgery.yaml --model model --format json");
    let answer = run.json();
    let fields: Vec<&String> = answer.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["format_version", "file", "model", "diagnostics"]);
    assert_eq!(answer["diagnostics"][0]["code"], "surgery::no_match");
    assert_eq!(answer["diagnostics"][0]["labels"][0]["line"], 4);
}

#[test]
fn all_lists_every_tensor_with_its_action() {
    let stage = Fixture::new("llama-3.2-1b", SCALE);
    let run = mlxcel(stage.dir(), "surgery plan surgery.yaml --model model --all");
    let lines = run.stdout.lines().filter(|line| line.contains("self_attn.o_proj.weight"));
    assert_eq!(lines.count(), 16);
    assert!(
        run.stdout.contains("model.layers.15.self_attn.o_proj.weight    bf16 [2048, 2048]  × 0.5\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_pipe_gets_no_colour_whatever_the_environment_says() {
    let stage = Fixture::new("llama-3.2-1b", WARNS);
    for (name, value) in
        [("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1"), ("FORCE_COLOR", "3"), ("TERM", "xterm-256color")]
    {
        let mut command = command(stage.dir());
        command.args(["surgery", "plan", "surgery.yaml", "--model", "model"]).env(name, value);
        let run = ended(command.output().expect("the program can be run"));
        assert!(!run.stdout.contains('\x1b') && !run.stderr.contains('\x1b'), "{name}: {run:#?}");
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let stage =
        Fixture::new("qwen3-30b-a3b", "version: 1\noperations:\n- op: scale\n  pattern: '*'\n  factor: 2\n");
    for arguments in [
        "surgery plan surgery.yaml --model model --all",
        "surgery plan surgery.yaml --model model --format json",
        "surgery check surgery.yaml --model model --format json",
        "surgery keys --model model",
    ] {
        let mut command = command(stage.dir());
        command.args(arguments.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be run");
        let mut first = [0; 1];
        child.stdout.take().expect("a pipe").read_exact(&mut first).expect("a first byte");
        let run = ended(child.wait_with_output().expect("the program ends"));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments}");
    }
}

#[test]
fn planning_reads_no_weight_so_any_size_is_planned_at_once() {
    let stage = Fixture::new("llama-3.2-1b", SCALE);
    sparse::write(&stage.dir().join("model/model.safetensors"), "model.o_proj.weight BF16 1000000,1000000\n");
    let run = mlxcel(stage.dir(), "surgery plan surgery.yaml --model model");
    assert!(run.stdout.starts_with("surgery.yaml  on  model  (1 tensor, 2 TB)\n"), "{}", run.stdout);
}
