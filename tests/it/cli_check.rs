//! `mlxcel surgery check`.

use std::fs;

use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::program::{Run, mlxcel};

const GOOD: &str = "version: 1\noperations: []\n";
const BAD: &str = "version: 1\noperations:\n- op: scale\n  pattern: '*'\n  factr: 0.5\n";
const DONOR: &str =
    "version: 1\noperations:\n- op: add\n  pattern: model.norm.weight\n  source: nowhere.safetensors\n";
const OTHER_MODEL: &str =
    "version: 1\noperations:\n- op: scale\n  pattern: '*.qkv_proj.weight'\n  factor: 0.5\n";
const WARNS: &str = "version: 1\noperations:\n- op: scale\n  pattern: lm_head.weight\n  factor: 0.5\n";

/// Runs `check` beside these files and a model.
#[track_caller]
fn check(arguments: &str, code: i32) -> Run {
    let stage = Fixture::new("llama-3.2-1b", GOOD);
    for (name, yaml) in
        [("good", GOOD), ("bad", BAD), ("donor", DONOR), ("other-model", OTHER_MODEL), ("warns", WARNS)]
    {
        fs::write(stage.dir().join(name).with_extension("yaml"), yaml).expect("a file can be written");
    }
    let run = mlxcel(stage.dir(), &format!("surgery check {arguments}"));
    assert_eq!(run.code, code, "{run:#?}");
    run
}

#[test]
fn without_a_model_only_the_file_and_its_donors_count() {
    check("good.yaml other-model.yaml warns.yaml", 0);
    check("donor.yaml", 1);
    check("donor.yaml --no-donors", 0);
    check("bad.yaml", 1);
}

#[test]
fn with_a_model_patterns_count_too() {
    check("good.yaml warns.yaml --model model", 0);
    check("other-model.yaml --model model", 1);
    check("other-model.yaml --model model --no-donors", 1);
    check("donor.yaml --model model --no-donors", 0);
    check("good.yaml --model nowhere", 1);
}

#[test]
fn a_file_that_is_fine_is_named() {
    assert_eq!(check("good.yaml", 0).stdout, "good.yaml: ok\n");
    let both = check("good.yaml other-model.yaml", 0).stdout;
    assert_eq!(both, "good.yaml: ok\nother-model.yaml: ok\n2 files: ok\n");
}

#[test]
fn one_bad_file_among_many_fails_the_check_and_all_are_reported() {
    let run = check("good.yaml bad.yaml nowhere.yaml", 1);
    assert!(run.stdout.contains("surgery::unknown_field"), "{}", run.stdout);
    assert!(run.stdout.contains("surgery::file_unreadable"), "{}", run.stdout);
    assert!(run.stdout.ends_with("\n3 files, 2 failed: 2 errors\n"), "{}", run.stdout);
    assert_eq!(run.stderr, "");
}

#[test]
fn deny_warnings_fails_a_check_that_warns() {
    assert!(check("warns.yaml --model model", 0).stdout.ends_with("1 file: 1 warning\n"));
    let end = "1 file: 1 warning\nwarnings are errors because of `--deny warnings`\n";
    assert!(check("warns.yaml --model model --deny warnings", 1).stdout.ends_with(end));
    let both = check("warns.yaml bad.yaml --model model --deny warnings --format github", 1).stdout;
    assert!(
        both.ends_with("all failed: 1 error, 1 warning\nwarnings are errors because of `--deny warnings`\n"),
        "{both}"
    );
    check("warns.yaml --model model --deny warnings --format json", 1);
}

#[test]
fn json_has_an_object_a_file_and_a_summary() {
    let answer = check("good.yaml bad.yaml --model model --format json", 1).json();
    assert_eq!(answer["format_version"], "1.0");
    assert_eq!(answer["summary"], json!({ "files": 2, "failed": 1, "errors": 1, "warnings": 0 }));
    let [good, bad] = &answer["files"].as_array().expect("a list")[..] else { panic!("{answer}") };
    assert_eq!((&good["file"], &good["digest"]), (&json!("good.yaml"), &Value::Null));
    assert_eq!(good["summary"]["tensors_edited"], 0);
    assert_eq!(bad.get("digest"), None);
    let codes: Vec<&Value> =
        bad["diagnostics"].as_array().expect("a list").iter().map(|one| &one["code"]).collect();
    assert!(codes.contains(&&json!("surgery::unknown_field")), "{codes:?}");
}

#[test]
fn sarif_is_one_run_with_a_result_for_each_diagnostic() {
    let log = check("bad.yaml donor.yaml --format sarif", 1).json();
    assert_eq!(log["version"], "2.1.0");
    let results = log["runs"][0]["results"].as_array().expect("a list");
    let places: Vec<&Value> = results
        .iter()
        .map(|result| &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        .collect();
    assert!(places.contains(&&json!("bad.yaml")) && places.contains(&&json!("donor.yaml")), "{places:?}");
}

#[test]
fn github_annotations_stand_a_line_each_and_errors_come_first() {
    let run = check("warns.yaml bad.yaml --model model --format github", 1);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[0].starts_with("::warning file=warns.yaml,line=4"), "{lines:#?}");
    assert!(lines[1].starts_with("::error file=bad.yaml,line="), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.starts_with("2 files, 1 failed: ")), "{lines:#?}");
}
