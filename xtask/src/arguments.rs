//! The command line. Written by hand: a handful of words needs no parser that takes longer to compile than to read.

use anyhow::{Result, bail};

pub(crate) const HELP: &str = "\
cargo xtask TASK

  setup         Make MLX available to Cargo. On Linux: fetch libmlx, compile mlx-c, write .mlx/cargo.toml; quick when
                nothing is to do. On macOS there is nothing to do: mlx-rs builds MLX itself.
  smollm2       Fetch SmolLM2-135M-Instruct (93 MB) into models/, the real model that tests and benchmarks run.
  help          Show this text.

What set-up builds is kept in $MLXCEL_CACHE, else $XDG_CACHE_HOME/mlxcel, else ~/.cache/mlxcel.";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Setup,
    Smollm2,
}

/// Reads the words after `cargo xtask`.
pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Task> {
    let words: Vec<String> = words.into_iter().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["help" | "--help" | "-h"] => Ok(Task::Help),
        ["setup"] => Ok(Task::Setup),
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
        check("setup now", None);
        check("steup", None);
    }
}
