//! Usage errors: clap's message, and a tip where clap has none or a wrong one.

use std::io::{self, Write as _};
use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::exit::Exit;
use super::output;

/// Prints what clap returns in place of a command: a usage error, help, or the version.
pub(super) fn print(mut error: clap::Error) -> Exit {
    replace_tip(&mut error);
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        return Exit::UsageError;
    }
    match printed {
        Err(failure) if failure.kind() != io::ErrorKind::BrokenPipe => {
            output::stderr(&output::unwritable(&failure).text(output::stderr_look()));
            Exit::Error
        }
        _ => Exit::Success,
    }
}

/// Replaces clap's tip by ours, if there is one.
fn replace_tip(error: &mut clap::Error) {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    // The command without the program's name, whatever that is.
    let command = usage.trim_start_matches("Usage: ").split_once(' ').map_or("", |(_, command)| command);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => tip_for_command(command, &text(ContextKind::InvalidSubcommand)),
        ErrorKind::UnknownArgument => tip_for_argument(command, &text(ContextKind::InvalidArg)),
        ErrorKind::MissingRequiredArgument => tip_for_missing(command),
        _ => None,
    };
    let claps = match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    // clap suggests to pass an unknown option as a value, which is never what was meant.
    if tip.is_some() || claps.iter().any(|tip: &String| tip.contains("'-- ")) {
        for kind in [ContextKind::Suggested, ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg] {
            error.remove(kind);
        }
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
}

/// A command in another place or under another name.
fn tip_for_command(command: &str, written: &str) -> Option<String> {
    let inside = command.starts_with("surgery");
    let path = match written {
        "plan" | "check" | "keys" | "explain" | "schema" | "export" | "diff" if !inside => {
            return Some(format!("use `mlxcel surgery {written}`"));
        }
        "generate" | "serve" | "score" | "man" | "completions" if inside => {
            return Some(format!("use `mlxcel {written}`"));
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
    Some(format!("use `mlxcel {path}`"))
}

/// An option of another command.
fn tip_for_argument(command: &str, written: &str) -> Option<String> {
    let of = |name: &str| command.starts_with(&format!("surgery {name}"));
    let flag = written.split('=').next().unwrap_or_default();
    Some(match flag {
        "--surgery" if of("plan") => {
            "pass the surgery file without a flag: `mlxcel surgery plan FILE --model DIR`".to_owned()
        }
        "--surgery" if of("check") => {
            "pass surgery files without a flag: `mlxcel surgery check FILE…`".to_owned()
        }
        "--surgery" if of("export") => {
            "pass the surgery file without a flag: `mlxcel surgery export FILE --model DIR --output NEW`"
                .to_owned()
        }
        "--surgery" if of("keys") => {
            "surgery does not change keys: `mlxcel surgery keys --model DIR`".to_owned()
        }
        "--model" | "-m" if of("diff") => {
            "pass the model without a flag: `mlxcel surgery diff DIR --surgery FILE`".to_owned()
        }
        _ => return None,
    })
}

/// What to pass for a missing argument.
fn tip_for_missing(command: &str) -> Option<String> {
    if command.starts_with("surgery diff") {
        return Some(
            "pass the weights to compare with, or `--surgery FILE` to compare with the edited model"
                .to_owned(),
        );
    }
    let last = std::env::args_os().next_back().filter(|last| Path::new(last).is_dir())?;
    (command.starts_with("surgery keys")).then(|| {
        format!(
            "pass a directory with its flag: `mlxcel surgery keys --model {}`",
            Path::new(&last).display()
        )
    })
}
