//! What the program generates about itself: the JSON Schema, completions, manual pages.

use clap::CommandFactory as _;

use super::exit::Exit;
use super::failure::{Failure, Outcome};
use super::output;
use crate::cli::Cli;
use crate::surgery;

/// The last section of every manual page.
const EXIT_STATUS: &str = ".SH \"EXIT STATUS\"
.TP
\\fB0\\fR
Success.
.TP
\\fB1\\fR
Error: a mistake in the input (with \\fB\\-\\-deny warnings\\fR also a warning), or a failure while running.
.TP
\\fB2\\fR
Usage error.
.TP
\\fB130\\fR
Interrupted.
";

/// `mlxcel surgery schema`.
pub(super) fn schema() -> Outcome {
    output::stdout(&format!("{:#}\n", surgery::schema()))?;
    Ok(Exit::Success)
}

/// `mlxcel completions`.
pub(super) fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mlxcel", &mut script);
    output::stdout(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}

/// `mlxcel man`.
pub(super) fn man(names: &[String]) -> Outcome {
    let mut command = Cli::command();
    command.build();
    for name in names {
        let Some(found) = command.find_subcommand(name).cloned() else {
            output::stderr(&format!("error: unknown command `{}`\n", names.join(" ")));
            return Ok(Exit::UsageError);
        };
        command = found;
    }
    // Named like git's: `mlxcel-surgery-plan`.
    let title = command.get_display_name().unwrap_or("mlxcel").to_owned();
    let synopsis = synopsis(&command);
    let mut page = Vec::new();
    let source = concat!("mlxcel ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command)
        .title(title)
        .source(source)
        .manual("mlxcel")
        .render(&mut page)
        .map_err(|error| Failure::io("cannot write the manual page", &error))?;
    page.extend_from_slice(EXIT_STATUS.as_bytes());
    let mut page = String::from_utf8_lossy(&page).into_owned();
    // clap_mangen's own synopsis lacks the values of options.
    if let (Some(synopsis), Some(start)) = (synopsis, page.find(".SH SYNOPSIS\n")) {
        let start = start + ".SH SYNOPSIS\n".len();
        let end = page[start..].find('\n').map_or(page.len(), |at| start + at);
        page.replace_range(start..end, &synopsis);
    }
    output::stdout(&page)?;
    Ok(Exit::Success)
}

/// A command's synopsis in roff; `None` for a command that only has subcommands.
fn synopsis(command: &clap::Command) -> Option<String> {
    if command.has_subcommands() {
        return None;
    }
    let roff = |text: &str| text.replace('-', "\\-");
    let mut parts = vec![format!("\\fB{}\\fR", roff(command.get_bin_name().unwrap_or("mlxcel")))];
    let (places, options): (Vec<_>, Vec<_>) =
        command.get_arguments().filter(|argument| !argument.is_hide_set()).partition(|a| a.is_positional());
    for argument in options.into_iter().chain(places) {
        let names = argument.get_value_names().unwrap_or_default().iter();
        let mut words: Vec<String> = argument
            .get_long()
            .map(|long| format!("\\fB{}\\fR", roff(&format!("--{long}"))))
            .into_iter()
            .collect();
        if argument.is_positional() || argument.get_action().takes_values() {
            words.extend(names.map(|name| format!("\\fI{}\\fR", roff(name))));
        }
        if argument.is_positional() && argument.get_num_args().is_some_and(|count| count.max_values() > 1) {
            words.push("...".to_owned());
        }
        let text = words.join(" ");
        parts.push(if argument.is_required_set() { text } else { format!("[{text}]") });
    }
    Some(parts.join(" "))
}
