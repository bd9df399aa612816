//! What the program says of itself: the schema of its files, completions, manual pages.

use std::process::ExitCode;

use clap::CommandFactory as _;
use miette::IntoDiagnostic as _;

use super::{Outcome, WRONG_COMMAND_LINE, output};
use crate::cli::Cli;
use crate::surgery;

/// What every manual page ends with.
const EXIT_STATUS: &str = ".SH \"EXIT STATUS\"
.TP
\\fB0\\fR
Fine.
.TP
\\fB1\\fR
A mistake in the input (with \\fB\\-\\-deny warnings\\fR a warning too), or a failure while running.
.TP
\\fB2\\fR
A wrong command line.
.TP
\\fB130\\fR
Interrupted.
";

/// `mlxcel surgery schema`.
pub(super) fn schema() -> Outcome {
    output::stdout(&format!("{:#}\n", surgery::schema()))?;
    Ok(ExitCode::SUCCESS)
}

/// `mlxcel completions`.
pub(super) fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mlxcel", &mut script);
    output::stdout(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// `mlxcel man`.
pub(super) fn man(names: &[String]) -> Outcome {
    let mut command = Cli::command();
    command.build();
    for name in names {
        let Some(found) = command.find_subcommand(name).cloned() else {
            output::stderr(&format!("error: `{}` is no command of mlxcel\n", names.join(" ")));
            return Ok(ExitCode::from(WRONG_COMMAND_LINE));
        };
        command = found;
    }
    // A page of a subcommand is named as git names its own: `mlxcel-surgery-plan`.
    let title = command.get_display_name().unwrap_or("mlxcel").to_owned();
    let mut page = Vec::new();
    let source = concat!("mlxcel ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command)
        .title(title)
        .source(source)
        .manual("mlxcel")
        .render(&mut page)
        .into_diagnostic()?;
    page.extend_from_slice(EXIT_STATUS.as_bytes());
    output::stdout(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}
