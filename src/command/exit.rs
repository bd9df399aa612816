//! The exit codes, and the end of the program.

use std::ffi::c_int;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Fine = 0,
    /// A diagnostic of severity error, or a failure while running.
    Failed = 1,
    /// A wrong command line.
    WrongCommandLine = 2,
    /// Ctrl-C.
    Interrupted = 130,
}

// SAFETY: this is the C library's `void _exit(int)`, which takes any number and does not return.
#[expect(unsafe_code, reason = "std has no way to end without destructors")]
unsafe extern "C" {
    safe fn _exit(status: c_int) -> !;
}

impl Exit {
    /// What a command ends with that has nothing else to say.
    pub(super) fn failed_if(failed: bool) -> Self {
        if failed { Self::Failed } else { Self::Fine }
    }

    /// Ends the program at once.
    ///
    /// A normal end runs the destructors of libraries, and those of a BLAS wait for ever for threads that still compute,
    /// or that found no memory to begin with. What must be written has been written: standard output is flushed with
    /// every piece.
    pub fn end(self) -> ! {
        _exit(self as c_int)
    }
}
