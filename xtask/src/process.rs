//! Runs other programs and prints progress.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::cargo::checkout;

/// Prints text to standard error.
#[expect(clippy::print_stderr, reason = "progress goes to standard error")]
pub(crate) fn print(text: &str) {
    eprintln!("{text}");
}

/// Prints a command and runs it with inherited output. A failed command is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    print(&format!("$ {}", shown(command)));
    let status = command.status().with_context(|| format!("`{}` cannot be started", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs a program and returns its standard output; an error contains its standard error.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("`{}` cannot be started", shown(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({})\n{}", shown(command), output.status, stderr.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` did not write UTF-8", shown(command)))
}

/// Whether a program exists and succeeds.
pub(crate) fn answers(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The command as typed in the repository's root.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = match program.strip_prefix(checkout()) {
        Ok(inside) => inside.as_os_str(),
        Err(_) if program.ends_with("cargo") => OsStr::new("cargo"),
        Err(_) => program.as_os_str(),
    };
    std::iter::once(program).chain(command.get_args()).map(quoted).collect::<Vec<_>>().join(" ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(program: impl AsRef<OsStr>, arguments: &[&str], expected: &str) {
        assert_eq!(shown(Command::new(program).args(arguments)), expected);
    }

    #[test]
    fn a_command_is_printed_as_typed() {
        check(
            "mlxcel",
            &["--prompt", "One morning", "it's", ""],
            r"mlxcel --prompt 'One morning' 'it'\''s' ''",
        );
        check(checkout().join("target/release/mlxcel"), &["--help"], "target/release/mlxcel --help");
        check("/somewhere/bin/cargo", &["build"], "cargo build");
    }

    #[test]
    fn an_error_contains_the_standard_error_of_the_program() {
        let error = capture(Command::new("sh").args(["-c", "echo no such luck >&2; exit 3"]));
        let error = error.map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("exit status: 3") && text.ends_with("no such luck")));
    }
}
