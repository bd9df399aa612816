//! Runs the built program, as a user does.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a run left behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// The program in a directory, free of the caller's environment.
pub(crate) fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlxcel"));
    command.current_dir(dir).stdin(Stdio::null());
    for name in ["MLXCEL_SURGERY", "NO_COLOR", "COLUMNS", "GITHUB_ACTIONS"] {
        command.env_remove(name);
    }
    command
}

/// Runs `mlxcel` with arguments that have no spaces in them.
#[track_caller]
pub(crate) fn mlxcel(dir: &Path, arguments: &str) -> Run {
    ended(command(dir).args(arguments.split_whitespace()).output().expect("the program can be run"))
}

#[track_caller]
pub(crate) fn ended(output: Output) -> Run {
    let text = |bytes| String::from_utf8(bytes).expect("mlxcel prints UTF-8");
    let code = output.status.code().expect("the program ends by itself");
    Run { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}
