//! Paths that cannot be read or written: each is refused with what is wrong with it, and nothing is left anywhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::program::{Run, command, ended, mlxcel};

/// A model, a directory of a donor, and things that are neither.
fn stage() -> tempfile::TempDir {
    let stage = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| stage.path().join(name);
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/base-bf16");
    for dir in ["model", "donor"] {
        fs::create_dir(at(dir)).expect("a directory");
        for name in ["config.json", "model.safetensors"] {
            fs::copy(model.join(name), at(dir).join(name)).expect("a copy");
        }
    }
    fs::write(at("file"), "").expect("a file");
    for (link, target) in [("loop", "pool"), ("pool", "loop"), ("dangling", "nowhere"), ("linked", "model")] {
        symlink(target, at(link)).expect("a link");
    }
    let yaml = "version: 1\noperations:\n- {op: add, pattern: model.norm.weight, source: donor}\n";
    fs::write(at("surgery.yaml"), yaml).expect("a file");
    stage
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("it is there")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

fn export(dir: &Path, output: &str) -> Run {
    let mut export = command(dir);
    export.args(["surgery", "export", "surgery.yaml", "--model", "model", "--output", output]);
    ended(export.output().expect("the program can be run"))
}

#[test]
fn an_output_that_cannot_be_is_refused_with_what_is_wrong() {
    let stage = stage();
    let before = names(stage.path());
    let (long, path) = ("x".repeat(256), "x/".repeat(2100));
    let mut cases = vec![
        ("file", "`file` already exists (a file)", "does not exist yet"),
        ("model", "`model` already exists (a directory)", "does not exist yet"),
        ("linked", "`linked` already exists (a directory)", "does not exist yet"),
        ("dangling", "`dangling` already exists (a broken link)", "does not exist yet"),
        ("loop", "`loop` already exists (a broken link)", "does not exist yet"),
        (".", "`.` already exists (a directory)", "does not exist yet"),
        ("..", "`..` already exists (a directory)", "does not exist yet"),
        ("/", "`/` already exists (a directory)", "does not exist yet"),
        ("no/..", "`no/..` does not name a new directory", "does not exist yet"),
        ("-", "cannot go to standard output", "`./-`"),
        ("file/new", "not a directory", "a parent component of the path is a file"),
        ("loop/new", "too many levels of symbolic links", "its symbolic links form a loop"),
        ("dangling/new", "`dangling` is a link to `nowhere`, which does not exist", "create that directory"),
        ("no/new", "the directory `no` for `new` does not exist", "create it first"),
        ("model/new", "`model/new` is inside the model directory `model`", "outside of it"),
        ("linked/new", "`linked/new` is inside the model directory `model`", "outside of it"),
        ("donor/new", "`donor/new` is inside the donor directory", "outside of it"),
        (&long, "file name too long", "255 bytes"),
        (&path, "file name too long", "4,096"),
    ];
    if cfg!(target_os = "linux") {
        // No permissions apply there, not even root's.
        cases.push((
            "/proc/new",
            "`/proc` is a virtual file system, which takes no directories",
            "on a disk",
        ));
        cases.push(("/sys/new", "cannot write `/sys`", "allow writing"));
    }
    for (output, message, help) in cases {
        let run = export(stage.path(), output);
        assert_eq!(run.code, 1, "{output}: {run:?}");
        let said = run.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(said.contains(message), "{output}: {}", run.stderr);
        assert!(said.split("help: ").nth(1).is_some_and(|said| said.contains(help)), "{}", run.stderr);
        assert!(!said.contains("os error"), "{}", run.stderr);
        assert_eq!(names(stage.path()), before, "{output}");
    }
}

#[test]
fn a_slash_behind_the_output_changes_nothing() {
    let stage = stage();
    for output in ["a/", "b//", "c/.", "./d", "linked/../e"] {
        let run = export(stage.path(), output);
        assert_eq!(run.code, 0, "{output}: {}", run.stderr);
    }
    assert!(
        ["a", "b", "c", "d", "e"].iter().all(|name| stage.path().join(name).join("config.json").exists())
    );
}

/// What is said of a path, as a surgery file, a model, a donor that is named and one in a surgery file.
#[track_caller]
fn check_reading(dir: &Path, path: &str, message: &str, help: &str) {
    let yaml = format!("version: 1\noperations:\n- {{op: add, pattern: '*', source: '{path}'}}\n");
    fs::write(dir.join("donated.yaml"), yaml).expect("a file");
    let mut commands = vec![
        format!("surgery check {path}"),
        format!("surgery plan surgery.yaml --model {path}"),
        format!("surgery keys --donor {path}"),
        "surgery plan donated.yaml --model model".to_owned(),
        format!("surgery diff model {path}"),
    ];
    if cfg!(feature = "mlx") {
        commands.push(format!("generate --model {path} --prompt x"));
        commands.push(format!("score --model model --text {path}"));
        commands.push(format!("generate --model model --prompt x --chat-template {path}"));
    }
    for command in commands {
        let run = mlxcel(dir, &command);
        // The words may be broken over lines.
        let said = run.stdout.split_whitespace().chain(run.stderr.split_whitespace());
        let said = said.filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert_eq!(run.code, 1, "{command}: {said}");
        assert!(said.contains(message), "{command}: {said}");
        assert!(said.contains(help) && !said.contains("damaged"), "{command}: {said}");
    }
}

#[test]
fn an_input_that_cannot_be_reached_is_refused_with_what_is_wrong() {
    let stage = stage();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/base-bf16");
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        fs::copy(model.join(name), stage.path().join("model").join(name)).expect("a copy");
    }
    check_reading(stage.path(), &"x".repeat(300), "file name too long", "255 bytes per name");
    check_reading(
        stage.path(),
        "loop",
        "too many levels of symbolic links",
        "its symbolic links form a loop",
    );
    check_reading(stage.path(), "file/x", "not a directory", "a parent component of the path is a file");
}

#[test]
fn a_model_whose_files_are_none_is_not_answered_with_their_modes() {
    let stage = tempfile::tempdir().expect("a temporary directory");
    for name in ["config.json", "model.safetensors"] {
        fs::create_dir_all(stage.path().join("model").join(name)).expect("a directory");
    }
    let run = mlxcel(stage.path(), "surgery keys --model model");
    let said = run.stdout + &run.stderr;
    for name in ["config.json", "model.safetensors"] {
        assert!(said.contains(&format!("`model/{name}`: a directory, not a file")), "{said}");
    }
    assert!(run.code == 1 && !said.contains("chmod"), "{said}");
}
