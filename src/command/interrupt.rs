//! Ctrl-C: breaks off what can be broken off, else ends the program at once; a second one always does. What is half
//! written goes away first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use miette::{IntoDiagnostic, WrapErr};

use super::{Exit, output};
use crate::execute::{ExportError, Stop, Stopped};

static HELD: AtomicBool = AtomicBool::new(false);
static STOP: Stop = Stop::new();

/// How long standard error may take, and a command for its last words.
const PATIENCE: Duration = Duration::from_secs(1);

/// A file that outgrows the system's limit is an error from here on, and not the end.
pub fn ignore_file_size() {
    signals::ignore_file_size();
}

/// Takes over Ctrl-C, and whatever else asks politely to end (SIGTERM, SIGHUP).
pub(super) fn listen() -> miette::Result<()> {
    let hangup = signals::ignore_hangup();
    ctrlc::set_handler(|| {
        let second = STOP.request();
        if second || !HELD.load(Ordering::SeqCst) {
            clear();
            Exit::Interrupted.end();
        }
    })
    .into_diagnostic()
    .wrap_err("Ctrl-C cannot be listened for")?;
    if hangup == signals::Hangup::Ignored {
        signals::ignore_hangup();
    }
    Ok(())
}

#[cfg(unix)]
mod signals {
    use std::ffi::c_int;

    // The same on all Unix systems that there are.
    const SIGHUP: c_int = 1;
    // On Linux (but for MIPS) and the BSDs, macOS among them.
    const SIGXFSZ: c_int = 25;
    const SIG_IGN: usize = 1;

    #[expect(unsafe_code, reason = "std has no way to ignore a signal")]
    unsafe extern "C" {
        fn signal(number: c_int, handler: usize) -> usize;
    }

    /// How the program was started: `nohup` has SIGHUP ignored.
    #[derive(Debug, PartialEq, Eq)]
    pub(super) enum Hangup {
        Ignored,
        Ends,
    }

    pub(super) fn ignore_hangup() -> Hangup {
        if ignore(SIGHUP) == SIG_IGN { Hangup::Ignored } else { Hangup::Ends }
    }

    pub(super) fn ignore_file_size() {
        ignore(SIGXFSZ);
    }

    #[expect(unsafe_code, reason = "std has no way to ignore a signal")]
    fn ignore(number: c_int) -> usize {
        // SAFETY: this is the C library's `signal`, and ignoring a signal runs no handler.
        unsafe { signal(number, SIG_IGN) }
    }
}

#[cfg(not(unix))]
mod signals {
    #[derive(Debug, PartialEq, Eq)]
    pub(super) enum Hangup {
        Ignored,
        Ends,
    }

    pub(super) fn ignore_hangup() -> Hangup {
        Hangup::Ends
    }

    pub(super) fn ignore_file_size() {}
}

/// Leaves nothing half written, and says so.
fn clear() {
    match STOP.at_once() {
        Stopped::Nothing => {}
        Stopped::Removed => say(format!("{}\n", ExportError::Interrupted)),
        Stopped::Left(path) => {
            say(format!("interrupted; `{}` is left behind and can be removed\n", path.display()));
        }
        // The command has its last words to say, and ends by itself unless nobody listens.
        Stopped::Settled => thread::sleep(PATIENCE),
    }
}

/// Says something on standard error, unless that takes long: whoever holds it may wait for ever.
fn say(text: String) {
    let (said, heard) = mpsc::channel();
    thread::spawn(move || {
        output::stderr(&text);
        let _ = said.send(());
    });
    let _ = heard.recv_timeout(PATIENCE);
}

/// From now on the first Ctrl-C only asks to [`stop`].
pub(super) fn hold() {
    HELD.store(true, Ordering::SeqCst);
}

/// What the first Ctrl-C asks, and what knows of anything half written.
pub(super) fn stop() -> &'static Stop {
    &STOP
}
