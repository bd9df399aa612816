//! `action.yml` and `.pre-commit-hooks.yaml`: what a repository of surgery files uses to validate itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::program::{Run, ended};

fn yaml(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    serde_saphyr::from_str(&fs::read_to_string(path).expect("the file is there")).expect("the file is YAML")
}

/// Runs the action's last step as a runner does, with `mlxcel` where its first step puts it.
fn action(inputs: &[(&str, &str)]) -> Run {
    let action = yaml("action.yml");
    let step = action["runs"]["steps"].as_array().and_then(|steps| steps.last()).expect("a step");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let bin = dir.path().join("mlxcel/bin");
    fs::create_dir_all(&bin)
        .and_then(|()| symlink(env!("CARGO_BIN_EXE_mlxcel"), bin.join("mlxcel")))
        .expect("a link");
    fs::create_dir_all(dir.path().join("a/b")).expect("a directory can be made");
    let files = [
        ("good.yaml", "version: 1\noperations: []\n"),
        ("a/bad one.yaml", "version: 3\n"),
        ("a/b/donor.yaml", "version: 1\noperations: [{op: add, pattern: x, source: nowhere.safetensors}]\n"),
    ];
    for (name, text) in files {
        fs::write(dir.path().join(name), text).expect("a file can be written");
    }
    let mut command = Command::new("bash");
    command.args(["-e", "-o", "pipefail", "-c", step["run"].as_str().expect("a script")]);
    command.current_dir(dir.path()).env("RUNNER_TEMP", dir.path());
    for (name, value) in step["env"].as_object().expect("variables") {
        let input = value.as_str().and_then(|text| text.strip_prefix("${{ inputs.")?.strip_suffix(" }}"));
        let input = input.expect("a variable is an input");
        let default = action["inputs"][input]["default"].as_str().unwrap_or_default();
        let given = inputs.iter().find(|(name, _)| *name == input).map_or(default, |(_, value)| value);
        command.env(name, given);
    }
    ended(command.output().expect("bash can be run"))
}

#[test]
fn the_action_checks_the_files_that_its_globs_reach() {
    let run = action(&[("files", "good.yaml")]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "1 file: ok\n"), "{run:#?}");
    let run = action(&[("files", "**/*.yaml")]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("::error file=a/bad one.yaml"), "{run:#?}");
    assert!(run.stdout.contains("::error file=a/b/donor.yaml"), "{run:#?}");
    let run = action(&[("files", "a/b/*.yaml good.yaml"), ("donors", "false")]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "2 files: ok\n"), "{run:#?}");
    let run = action(&[("files", "*.yml")]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "::error::no surgery file matches: *.yml\n"));
}

#[test]
fn the_hook_runs_a_command_that_exists() {
    let hooks = yaml(".pre-commit-hooks.yaml");
    let entry = hooks[0]["entry"].as_str().expect("an entry");
    let arguments = entry.strip_prefix("mlxcel ").expect("the hook runs mlxcel");
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write(dir.path().join("surgery.yaml"), "version: 1\noperations: []\n")
        .expect("a file can be written");
    assert_eq!(crate::program::mlxcel(dir.path(), &format!("{arguments} surgery.yaml")).code, 0);
}
