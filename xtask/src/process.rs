//! Running other programs, and telling the person at the terminal about it.

use std::{
    ffi::OsStr,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// The Cargo that runs us, in the checkout.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::checkout());
    command
}

/// Writes one line (or a few) to stderr.
#[expect(clippy::print_stderr, reason = "a task's progress is for the person at the terminal")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// The command as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Runs a program that speaks for itself; its failure is ours.
#[expect(dead_code, reason = "the tasks that run programs come next")]
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("`{}` cannot be started", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs a program and returns what it wrote to stdout; what it wrote to stderr becomes part of the error.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("`{}` cannot be started", shown(command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({})\n{}", shown(command), output.status, complaint.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` wrote no UTF-8", shown(command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("mlxcel");
        command.args(["generate", "--prompt", "One morning Anna", "--stop", "it's", ""]);
        assert_eq!(shown(&command), r"mlxcel generate --prompt 'One morning Anna' --stop 'it'\''s' ''");
    }

    #[test]
    fn a_failure_carries_what_the_program_said() {
        let error = capture(Command::new("sh").args(["-c", "echo no such luck >&2; exit 3"]));
        let error = error.map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("exit status: 3") && text.ends_with("no such luck")));
    }
}
