//! The only way out: standard output and standard error, and what the terminals behind them can show.

use std::env;
use std::io::{self, IsTerminal, Write};

use miette::{IntoDiagnostic, WrapErr};

use crate::diagnostic::Look;

/// Writes to standard output. A reader that has gone (`… | head`) is not an error: the rest is not wanted.
///
/// # Errors
/// What the system says of any other failure, such as a full disk.
pub fn stdout(text: &str) -> miette::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(unwritable),
    }
}

/// Writes a piece of a longer text to standard output, and says whether anybody still reads.
///
/// # Errors
/// What the system says of any failure but a reader that has gone.
pub fn piece(text: &str) -> miette::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(unwritable(error)),
    }
}

/// What is said where standard output cannot be written.
#[must_use]
pub fn unwritable(error: io::Error) -> miette::Report {
    Err::<(), _>(error).into_diagnostic().wrap_err("standard output cannot be written").unwrap_err()
}

/// Writes to standard error, as far as that is possible: where it is not, nobody could be told.
pub fn stderr(text: &str) {
    let mut err = io::stderr().lock();
    let _unreported = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// What standard output can show.
#[must_use]
pub fn look() -> Look {
    look_of(&io::stdout(), terminal_size::terminal_size())
}

/// What standard output can show, if it is a terminal.
#[must_use]
pub fn terminal_look() -> Option<Look> {
    io::stdout().is_terminal().then(look)
}

/// Whether standard output and standard error both go to a terminal.
#[must_use]
pub fn one_terminal() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// The same for lists, which are searched line by line: only a terminal breaks their lines.
#[must_use]
pub fn list_look() -> Look {
    let look = look();
    if io::stdout().is_terminal() { look } else { Look { width: usize::MAX, ..look } }
}

/// What standard error can show.
#[must_use]
pub fn stderr_look() -> Look {
    look_of(&io::stderr(), terminal_size::terminal_size_of(io::stderr()))
}

/// Lines wider than this are hard to follow, however wide the terminal is.
const WIDEST: usize = 120;

fn look_of(stream: &impl IsTerminal, size: Option<(terminal_size::Width, terminal_size::Height)>) -> Look {
    if !stream.is_terminal() {
        return Look::PLAIN;
    }
    let width = size.map_or(80, |(width, _)| usize::from(width.0)).clamp(20, WIDEST);
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let colour = !set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb");
    Look { width, colour, unicode: unicode_locale() }
}

/// Whether the locale writes UTF-8. Windows terminals and Apple's do, whatever the variables say.
fn unicode_locale() -> bool {
    if cfg!(any(windows, target_vendor = "apple")) {
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
