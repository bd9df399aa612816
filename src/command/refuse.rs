//! Mistakes in the command line: clap's words, and a tip where clap has none or a wrong one.

use std::io::{self, Write as _};
use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Exit, output};

/// Prints what clap has to say in place of a command: a mistake in the command line, help, or the version.
#[must_use]
pub fn refuse(mut error: clap::Error) -> Exit {
    advise(&mut error);
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        return Exit::WrongCommandLine;
    }
    match printed {
        Err(failure) if failure.kind() != io::ErrorKind::BrokenPipe => {
            output::stderr(&format!("{:?}\n", output::unwritable(failure)));
            Exit::Failed
        }
        _ => Exit::Fine,
    }
}

/// Puts our tip in the place of clap's.
fn advise(error: &mut clap::Error) {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    // Whatever the program is called.
    let command = usage.trim_start_matches("Usage: ").split_once(' ').map_or("", |(_, command)| command);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => of_command(command, &text(ContextKind::InvalidSubcommand)),
        ErrorKind::UnknownArgument => of_argument(command, &text(ContextKind::InvalidArg)),
        ErrorKind::MissingRequiredArgument => of_missing(command),
        _ => None,
    };
    let by_clap = match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    // No option is meant as the value of something else.
    if tip.is_some() || by_clap.iter().any(|tip: &String| tip.contains("'-- ")) {
        for kind in [ContextKind::Suggested, ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg] {
            error.remove(kind);
        }
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
}

/// A command that stands elsewhere, or is called otherwise.
fn of_command(command: &str, written: &str) -> Option<String> {
    let inside = command.starts_with("surgery");
    let path = match written {
        "plan" | "check" | "keys" | "explain" | "schema" | "export" | "diff" if !inside => {
            return Some(format!("it is a command of `surgery`: `mlxcel surgery {written}`"));
        }
        "generate" | "serve" | "score" | "man" | "completions" if inside => {
            return Some(format!("it is a command of its own: `mlxcel {written}`"));
        }
        "validate" | "lint" | "verify" => "surgery check",
        "show" | "preview" | "dry-run" | "explain-plan" => "surgery plan",
        "apply" | "save" | "convert" | "merge" => "surgery export",
        "list" | "ls" | "tensors" | "inspect" => "surgery keys",
        "compare" => "surgery diff",
        "run" | "chat" | "complete" | "completion" => "generate",
        "server" | "start" => "serve",
        "perplexity" | "eval" => "score",
        _ => return None,
    };
    Some(format!("that is `mlxcel {path}`"))
}

/// An option that another command has.
fn of_argument(command: &str, written: &str) -> Option<String> {
    let of = |name: &str| command.starts_with(&format!("surgery {name}"));
    let flag = written.split('=').next().unwrap_or_default();
    Some(match flag {
        "--surgery" if of("plan") => {
            "the surgery file needs no flag: `mlxcel surgery plan FILE --model DIR`".to_owned()
        }
        "--surgery" if of("check") => "surgery files need no flag: `mlxcel surgery check FILE…`".to_owned(),
        "--surgery" if of("export") => {
            "the surgery file needs no flag: `mlxcel surgery export FILE --model DIR --output NEW`".to_owned()
        }
        "--surgery" if of("keys") => {
            "keys are those that the checkpoint has, whatever is done to it: `mlxcel surgery keys --model DIR`"
                .to_owned()
        }
        "--model" | "-m" if of("diff") => {
            "the model needs no flag: `mlxcel surgery diff DIR --surgery FILE`".to_owned()
        }
        _ => return None,
    })
}

/// What would do in place of an argument that is missing.
fn of_missing(command: &str) -> Option<String> {
    if command.starts_with("surgery diff") {
        return Some(
            "name the weights to compare with, or `--surgery FILE` for what a surgery file makes of the model"
                .to_owned(),
        );
    }
    let last = std::env::args_os().next_back().filter(|last| Path::new(last).is_dir())?;
    (command.starts_with("surgery keys")).then(|| {
        format!("a directory needs its flag: `mlxcel surgery keys --model {}`", Path::new(&last).display())
    })
}
