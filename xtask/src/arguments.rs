//! The command line. Parsed by hand, because an argument parser would dominate xtask's compile time.

use anyhow::{Result, bail};

pub(crate) const HELP: &str = "\
cargo xtask TASK

  demo          Build mlxcel and run one small model before and after surgery. Start here.
  test          Run all tests on the fixtures.
  test --real   Run the end-to-end tests on SmolLM2 instead, and test the server with OpenAI's SDK and its schema.
  bench         Measure the planner and the executor against plain copies of the same bytes.
  setup         Make MLX available to Cargo; `demo` and `test` run it first. On Linux: fetch libmlx, compile mlx-c,
                write .mlx/cargo.toml; fast if all of this is done already. On macOS mlx-rs builds MLX itself.
  smollm2       Fetch SmolLM2-135M-Instruct (93 MB), a real model for tests and benchmarks, into models/.
  help          Show this help.

`setup` caches its results in $MLXCEL_CACHE, or $XDG_CACHE_HOME/mlxcel, or ~/.cache/mlxcel.
Set $CXX to use another C++ compiler, $LIBCLANG_PATH to use libclang from another directory.";

/// A task that the command line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Setup,
    Bench,
    Demo,
    Test { real: bool },
    Smollm2,
}

/// Parses the words after `cargo xtask`.
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
        _ => bail!("unknown task `{}`; run `cargo xtask help`", words.join(" ")),
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
