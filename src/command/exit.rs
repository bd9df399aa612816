//! [`Exit`]: the exit codes, and the end of the program.

use std::ffi::c_int;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Success.
    Success = 0,
    /// A diagnostic of severity error, or a failure while running.
    Error = 1,
    /// A wrong command line.
    UsageError = 2,
    /// Ctrl-C.
    Interrupted = 130,
}

// SAFETY: this is the C library's `void _exit(int)`, which takes any number and does not return.
#[expect(unsafe_code, reason = "std has no way to end without destructors")]
unsafe extern "C" {
    safe fn _exit(status: c_int) -> !;
}

impl Exit {
    /// The exit code of a command that either succeeded or failed.
    pub(super) fn failed_if(failed: bool) -> Self {
        if failed { Self::Error } else { Self::Success }
    }

    /// Ends the program at once.
    ///
    /// A normal end runs the destructors of libraries, and those of a BLAS may wait forever for threads that still
    /// compute or that never got memory. Nothing is lost: standard output is flushed after every write.
    pub(super) fn end(self) -> ! {
        _exit(self as c_int)
    }
}
