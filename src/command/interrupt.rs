//! Ctrl-C: breaks off what can be broken off, else ends the program at once; a second one always does.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use miette::{IntoDiagnostic, WrapErr};

/// The exit code after Ctrl-C.
pub(super) const CODE: u8 = 130;

static HELD: AtomicBool = AtomicBool::new(false);
static REQUESTED: AtomicBool = AtomicBool::new(false);

// Ending through `std::process::exit` runs the destructors of libraries whose threads are still computing, and OpenBLAS
// then waits for them for ever. What must be written has been written: standard output is flushed with every piece.
// SAFETY: this is the C library's `void _exit(int)`, which takes any number and does not return.
#[expect(unsafe_code, reason = "std has no way to end without destructors")]
unsafe extern "C" {
    safe fn _exit(status: c_int) -> !;
}

/// Takes over Ctrl-C.
pub(super) fn listen() -> miette::Result<()> {
    ctrlc::set_handler(|| {
        let second = REQUESTED.swap(true, Ordering::SeqCst);
        if second || !HELD.load(Ordering::SeqCst) {
            _exit(CODE.into());
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
