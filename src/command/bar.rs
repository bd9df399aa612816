//! [`Bar`]: progress on standard error, for work that takes longer than a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nothing is drawn before this time has passed, or where standard error is not a terminal.
const PATIENCE: Duration = Duration::from_secs(1);

/// The progress of one task. Dropping it removes it from the terminal.
#[derive(Debug)]
pub(super) struct Bar {
    inner: ProgressBar,
    begun: Instant,
    shown: bool,
}

impl Bar {
    /// A bar that counts bytes; `task` says what is being done.
    pub(super) fn bytes(task: &'static str) -> Self {
        let line = "{msg} {bar:30} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}";
        Self::new(task, line)
    }

    /// A bar drawn as `line`, an indicatif template in which `{msg}` is the task.
    pub(super) fn new(task: &'static str, line: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(line) {
            bar.set_style(style);
        }
        bar.set_message(task);
        Self { inner: bar, begun: Instant::now(), shown: false }
    }

    /// Sets how much is done, and of how much.
    pub(super) fn set(&mut self, done: u64, total: u64) {
        if !self.shown && self.begun.elapsed() >= PATIENCE {
            self.inner.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        self.inner.set_length(total);
        self.inner.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.inner.finish_and_clear();
    }
}
