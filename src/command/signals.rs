//! Signals that the program ignores. The program is for Unix.

use std::ffi::c_int;

/// The same on all Unix systems.
const SIGHUP: c_int = 1;
/// On Linux (but for MIPS), the BSDs and macOS.
const SIGXFSZ: c_int = 25;
const SIG_IGN: usize = 1;

#[expect(unsafe_code, reason = "std has no way to ignore a signal")]
unsafe extern "C" {
    fn signal(number: c_int, handler: usize) -> usize;
}

/// What SIGHUP did before.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hangup {
    /// It was ignored already, as `nohup` has it.
    Ignored,
    /// It ended the program.
    Ends,
}

/// Ignores SIGHUP.
pub(super) fn ignore_hangup() -> Hangup {
    if ignore(SIGHUP) == SIG_IGN { Hangup::Ignored } else { Hangup::Ends }
}

/// Ignores SIGXFSZ: a file that exceeds the system's size limit is an error, not the end of the program.
pub(super) fn ignore_file_size() {
    ignore(SIGXFSZ);
}

#[expect(unsafe_code, reason = "std has no way to ignore a signal")]
fn ignore(number: c_int) -> usize {
    // SAFETY: this is the C library's `signal`, and ignoring a signal runs no handler.
    unsafe { signal(number, SIG_IGN) }
}
