//! Ctrl-C: breaks off what can be broken off, else ends the program at once; a second one always does.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use miette::{IntoDiagnostic, WrapErr};

/// The exit code after Ctrl-C.
pub(super) const CODE: u8 = 130;

static HELD: AtomicBool = AtomicBool::new(false);
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Takes over Ctrl-C.
pub(super) fn listen() -> miette::Result<()> {
    ctrlc::set_handler(|| {
        let second = REQUESTED.swap(true, Ordering::SeqCst);
        if second || !HELD.load(Ordering::SeqCst) {
            process::exit(CODE.into());
        }
    })
    .into_diagnostic()
    .wrap_err("Ctrl-C cannot be listened for")
}

/// From now on the first Ctrl-C only makes [`requested`] true.
pub(super) fn hold() {
    HELD.store(true, Ordering::SeqCst);
}

/// Whether there was a Ctrl-C.
pub(super) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
