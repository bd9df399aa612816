//! Standard output and standard error, and what the terminals behind them can show. Nothing else prints.

use std::env;
use std::io::{self, IsTerminal, Write};

use super::failure::Failure;
use crate::diagnostic::Look;

/// Writes to standard output. A closed pipe (`… | head`) is not an error: the reader wants no more.
///
/// # Errors
/// Any other failure, such as a full disk.
pub(super) fn stdout(text: &str) -> Result<(), Failure> {
    stdout_piece(text).map(|_open| ())
}

/// Writes a piece of a longer text to standard output. Returns whether anything still reads it.
///
/// # Errors
/// Any failure but a closed pipe.
pub(super) fn stdout_piece(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(unwritable(&error)),
    }
}

/// Standard output cannot be written.
pub(super) fn unwritable(error: &io::Error) -> Failure {
    Failure::io("cannot write to standard output", error)
}

/// Writes to standard error. A failure is ignored: there is no other place to report it.
pub(super) fn stderr(text: &str) {
    let mut err = io::stderr().lock();
    let _unreported = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// What standard output can show.
pub(super) fn look() -> Look {
    look_of(&io::stdout(), terminal_size::terminal_size())
}

/// What standard output can show, if it is a terminal.
pub(super) fn terminal_look() -> Option<Look> {
    io::stdout().is_terminal().then(look)
}

/// Whether standard output and standard error both go to a terminal.
pub(super) fn one_terminal() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// What standard output can show of a list. Only a terminal breaks its lines, because lists are searched by line.
pub(super) fn list_look() -> Look {
    let look = look();
    if io::stdout().is_terminal() { look } else { Look { width: usize::MAX, ..look } }
}

/// What standard error can show.
pub(super) fn stderr_look() -> Look {
    look_of(&io::stderr(), terminal_size::terminal_size_of(io::stderr()))
}

/// Longer lines are hard to follow, however wide the terminal is.
const MAX_WIDTH: usize = 120;
/// Narrower terminals get longer lines than they can show.
const MIN_WIDTH: usize = 20;

fn look_of(stream: &impl IsTerminal, size: Option<(terminal_size::Width, terminal_size::Height)>) -> Look {
    if !stream.is_terminal() {
        return Look::PLAIN;
    }
    let width = size.map_or(80, |(width, _)| usize::from(width.0)).clamp(MIN_WIDTH, MAX_WIDTH);
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let colour = !set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb");
    Look { width, colour, unicode: unicode_locale() }
}

/// Whether the locale is UTF-8. Apple's terminals are, whatever the variables say.
fn unicode_locale() -> bool {
    if cfg!(target_vendor = "apple") {
        return true;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_some_and(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    })
}
