//! `mlxcel surgery explain`: the page of a code, or the list of all.

use std::process::ExitCode;

use super::{Outcome, WRONG_COMMAND_LINE, output};
use crate::cli::ExplainArgs;
use crate::diagnostic::{BOLD, Code, Severity, explain, rows};

pub(super) fn run(args: &ExplainArgs) -> Outcome {
    let Some(written) = &args.code else {
        output::stdout(&list())?;
        return Ok(ExitCode::SUCCESS);
    };
    let name = written.strip_prefix("surgery::").unwrap_or(written);
    let Some(code) = Code::ALL.iter().find(|code| code.name() == name) else {
        return Ok(unknown(written, name));
    };
    output::stdout(&explain(*code))?;
    Ok(ExitCode::SUCCESS)
}

/// A code that does not exist is a wrong command line.
fn unknown(written: &str, name: &str) -> ExitCode {
    let near = Code::ALL
        .iter()
        .map(|code| (strsim::damerau_levenshtein(code.name(), name), code.name()))
        .min()
        .filter(|(distance, _)| *distance <= name.chars().count().max(6) / 3);
    let hint = near.map(|(_, near)| format!("did you mean `{near}`? ")).unwrap_or_default();
    output::stderr(&format!(
        "error: there is no code `{written}`\n\n  {hint}`mlxcel surgery explain` lists all codes\n"
    ));
    ExitCode::from(WRONG_COMMAND_LINE)
}

fn list() -> String {
    let look = output::look();
    let mut out = String::new();
    for (severity, heading) in
        [(Severity::Error, "errors"), (Severity::Warning, "warnings"), (Severity::Advice, "advice")]
    {
        let codes = Code::ALL.iter().filter(|code| code.severity() == severity);
        let table: Vec<_> = codes.map(|code| (code.name().to_owned(), code.summary().to_owned())).collect();
        if !out.is_empty() {
            out.push('\n');
        }
        out += &(look.paint(BOLD, heading) + "\n" + &rows(&table, 2, look));
    }
    out
}
