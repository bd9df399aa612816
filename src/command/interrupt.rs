//! Ctrl-C, SIGTERM and SIGHUP: the first asks a command to stop, or ends the program if the command cannot stop; a
//! second one always ends it. Half-written output is removed first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::exit::Exit;
use super::failure::Failure;
use super::output;
use super::signals::{self, Hangup};
use crate::execute::{ExportError, Stop, Stopped};

static HELD: AtomicBool = AtomicBool::new(false);
static STOP: Stop = Stop::new();

/// How long standard error, or the end of a command, may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Listens for Ctrl-C, SIGTERM and SIGHUP.
pub(super) fn listen() -> Result<(), Failure> {
    let hangup = signals::ignore_hangup();
    ctrlc::set_handler(|| {
        let second = STOP.request();
        if second || !HELD.load(Ordering::SeqCst) {
            clean_up();
            Exit::Interrupted.end();
        }
    })
    .map_err(|error| Failure::new(format!("cannot listen for Ctrl-C: {error}")))?;
    // The handler above took SIGHUP over too; under `nohup` it stays ignored.
    if hangup == Hangup::Ignored {
        signals::ignore_hangup();
    }
    Ok(())
}

/// Removes half-written output and reports it.
fn clean_up() {
    match STOP.at_once() {
        Stopped::Nothing => {}
        Stopped::Removed => report(format!("{}\n", ExportError::Interrupted)),
        Stopped::Left(path) => {
            report(format!("interrupted; `{}` could not be removed, remove it by hand\n", path.display()));
        }
        // The command is about to print its result and ends by itself, unless its output is blocked.
        Stopped::Settled => thread::sleep(PATIENCE),
    }
}

/// Prints on standard error, but does not wait for a reader that is blocked.
fn report(text: String) {
    let (sender, printed) = mpsc::channel();
    thread::spawn(move || {
        output::stderr(&text);
        let _ = sender.send(());
    });
    let _ = printed.recv_timeout(PATIENCE);
}

/// From now on the first signal only requests a [`stop`].
pub(super) fn hold() {
    HELD.store(true, Ordering::SeqCst);
}

/// Whether a stop is requested, and what is half written.
pub(super) fn stop() -> &'static Stop {
    &STOP
}
