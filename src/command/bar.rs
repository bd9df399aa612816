//! [`Bar`]: progress on standard error, for whatever takes longer than a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nothing is drawn before so much time has passed, nor where standard error is no terminal.
const PATIENCE: Duration = Duration::from_secs(1);

/// Progress of a long piece of work. It goes away when it is dropped.
#[derive(Debug)]
pub(super) struct Bar {
    inner: ProgressBar,
    begun: Instant,
    shown: bool,
}

impl Bar {
    /// A bar over bytes that says what is being done.
    pub(super) fn bytes(what: &'static str) -> Self {
        let line = "{msg} {bar:30} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}";
        Self::new(what, line)
    }

    /// A bar that is drawn as `line`, a template of indicatif's, in which `{msg}` is what is being done.
    pub(super) fn new(what: &'static str, line: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(line) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self { inner: bar, begun: Instant::now(), shown: false }
    }

    /// So many are done, of so many in all.
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
