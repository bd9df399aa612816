//! The command line. Read by hand: a handful of words needs no parser that takes longer to compile than to write.

use anyhow::{Result, bail};

pub(crate) const HELP: &str = "\
cargo xtask TASK

  demo          One small model before and after surgery: build mlxcel, plan, generate twice. Start here.
  test          Run all tests on the fixtures.
  test --real   Run the end-to-end tests on SmolLM2 instead, and the OpenAI SDK against the server.
  bench         Measure the planner and the executor against plain copies of the same bytes.
  setup         Make MLX available to Cargo; `demo` and `test` begin with it. On Linux: fetch libmlx, compile mlx-c,
                write .mlx/cargo.toml. Quick when nothing is to do. On macOS mlx-rs builds MLX itself.
  smollm2       Fetch SmolLM2-135M-Instruct (93 MB) into models/, a real model for tests and benchmarks.
  help          Show this text.

What set-up builds is kept in $MLXCEL_CACHE, else $XDG_CACHE_HOME/mlxcel, else ~/.cache/mlxcel.
$CXX names another C++ compiler, $LIBCLANG_PATH the folder of another libclang.";

/// What the command line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Setup,
    Bench,
    Demo,
    Test { real: bool },
    Smollm2,
}

/// Reads the words after `cargo xtask`.
pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Task> {
    let words: Vec<String> = words.into_iter().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["help" | "--help" | "-h"] => Ok(Task::Help),
        ["setup"] => Ok(Task::Setup),
        ["bench"] => Ok(Task::Bench),
        ["demo"] => Ok(Task::Demo),
        ["test"] => Ok(Task::Test { real: false }),
        ["test", "--real"] => Ok(Task::Test { real: true }),
        ["smollm2"] => Ok(Task::Smollm2),
        _ => bail!("`{}` is no task; `cargo xtask help` lists them", words.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<Task>) {
        assert_eq!(parse(line.split_whitespace().map(String::from)).ok(), expected, "cargo xtask {line}");
    }

    #[test]
    fn words_name_a_task_or_are_refused() {
        check("", Some(Task::Help));
        check("--help", Some(Task::Help));
        check("setup", Some(Task::Setup));
        check("bench", Some(Task::Bench));
        check("test", Some(Task::Test { real: false }));
        check("test --real", Some(Task::Test { real: true }));
        check("setup now", None);
        check("steup", None);
    }
}
