//! Standard output and standard error that are closed, full or no longer read: the same behaviour for all commands.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{Run, command, ended};

const YAML: &str = "version: 1\noperations:\n- {op: scale, pattern: model.norm.weight, factor: 2}\n";

/// A directory with a surgery file, one with a mistake, and a small model.
fn stage() -> tempfile::TempDir {
    let stage = tempfile::tempdir().expect("a temporary directory");
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/base-bf16");
    std::os::unix::fs::symlink(model, stage.path().join("model")).expect("a link");
    fs::write(stage.path().join("surgery.yaml"), YAML).expect("a file");
    fs::write(stage.path().join("wrong.yaml"), YAML.replace("scale", "skale")).expect("a file");
    stage
}

/// All commands that write to standard output, with their exit codes.
fn commands() -> Vec<(&'static str, i32)> {
    let mut commands = vec![
        ("surgery plan surgery.yaml --model model", 0),
        ("surgery plan surgery.yaml --model model --json", 0),
        ("surgery plan wrong.yaml --model model --json", 1),
        ("surgery check surgery.yaml", 0),
        ("surgery check surgery.yaml --format github", 0),
        ("surgery check wrong.yaml --format sarif", 1),
        ("surgery keys --model model", 0),
        ("surgery keys --model model --json", 0),
        ("surgery diff model --surgery surgery.yaml", 0),
        ("surgery diff model model --json", 0),
        ("surgery explain", 0),
        ("surgery explain no_match", 0),
        ("surgery schema", 0),
        ("surgery export wrong.yaml --model model --output new --json", 1),
        ("completions bash", 0),
        ("man", 0),
        ("--help", 0),
        ("surgery plan --help", 0),
        ("--version", 0),
    ];
    if cfg!(feature = "mlx") {
        commands.extend([
            ("generate --model model --prompt Once --max-tokens 3 --quiet", 0),
            ("generate --model model --prompt Once --max-tokens 3 --quiet --json", 0),
            ("generate --model model --prompt Once --max-tokens 3 --quiet --surgery surgery.yaml --compare", 0),
            ("score --model model --tokens 1,2,3 --quiet", 0),
            ("score --model model --tokens 1,2,3 --quiet --json", 0),
        ]);
    }
    commands
}

/// Runs a command in a shell, with redirections.
fn shell(dir: &Path, arguments: &str, redirections: &str) -> Run {
    let mut sh = Command::new("sh");
    let script = format!("'{}' {arguments} {redirections}", env!("CARGO_BIN_EXE_mlxcel"));
    sh.args(["-c", &script]).current_dir(dir).env_remove("MLXCEL_SURGERY").stdin(Stdio::null());
    ended(sh.output().expect("there is `sh`"))
}

/// A pipe without a reader.
pub(crate) fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let stage = stage();
    for (arguments, code) in commands() {
        let mut command = command(stage.path());
        command.args(arguments.split(' ')).stdout(closed_pipe()).stderr(Stdio::piped());
        let run = ended(command.output().expect("the program can be run"));
        assert_eq!((run.code, run.stderr.as_str()), (code, ""), "{arguments}");
    }
}

#[test]
fn a_closed_output_is_ignored() {
    let stage = stage();
    for (arguments, code) in commands() {
        let run = shell(stage.path(), arguments, ">&-");
        assert_eq!((run.code, run.stderr.as_str()), (code, ""), "{arguments}");
        let run = shell(stage.path(), arguments, "2>&- <&-");
        assert_eq!(run.code, code, "{arguments}");
        assert!(!run.stdout.is_empty(), "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let stage = stage();
    for (arguments, _) in commands() {
        let run = shell(stage.path(), arguments, "> /dev/full");
        assert_eq!(run.code, 1, "{arguments}");
        assert!(run.stderr.contains("cannot write to standard output"), "{arguments}: {}", run.stderr);
        assert!(run.stderr.contains("no space left on device"), "{arguments}: {}", run.stderr);
        assert!(!run.stderr.contains("complete"), "{arguments}: {}", run.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_beyond_the_file_size_limit_is_an_error() {
    let stage = stage();
    for arguments in
        ["surgery schema", "surgery keys --model model --json", "completions bash", "surgery --help"]
    {
        let limited = format!("> out; ulimit -f 1; '{}' {arguments} > out", env!("CARGO_BIN_EXE_mlxcel"));
        let run = shell(stage.path(), "--version", &limited);
        assert_eq!(run.code, 1, "{arguments}");
        assert!(run.stderr.contains("cannot write to standard output"), "{arguments}: {}", run.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_error_is_ignored() {
    let stage = stage();
    for (arguments, code) in commands() {
        let run = shell(stage.path(), arguments, "2> /dev/full");
        assert_eq!(run.code, code, "{arguments}");
        assert!(!run.stdout.is_empty(), "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_lost_report_says_that_the_output_itself_is_complete() {
    let stage = stage();
    let export = "surgery export surgery.yaml --model model --output";
    let run = shell(stage.path(), &format!("{export} new --json"), "> /dev/full");
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("the checkpoint `new` is complete"), "{}", run.stderr);
    assert!(run.stderr.contains("cannot write to standard output"), "{}", run.stderr);
    let same = shell(stage.path(), "surgery diff model new --json", "").json();
    assert_eq!(same["summary"]["differs"], 1);
    for (arguments, redirection) in
        [("piped --json", ">&-"), ("text", "> /dev/full"), ("mute", "2> /dev/full")]
    {
        let run = shell(stage.path(), &format!("{export} {arguments}"), redirection);
        assert_eq!(run.code, 0, "{arguments}: {}", run.stderr);
    }
    if cfg!(feature = "mlx") {
        let run =
            shell(stage.path(), "score --model model --tokens 1,2 --logits logits --quiet", "> /dev/full");
        assert_eq!(run.code, 1);
        assert!(run.stderr.contains("the logits `logits` are complete"), "{}", run.stderr);
        assert!(stage.path().join("logits").exists());
    }
}
