//! [`Severity`]: how much a diagnostic weighs, and what it is called.

use anstyle::{AnsiColor, Style};

/// How much a diagnostic weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; never counts against a file. People see `note`.
    Advice,
    /// Probably not what was meant; an error under `--deny warnings`.
    Warning,
    /// Prevents the plan.
    Error,
}

impl Severity {
    /// `error`, `warning` or `advice`: the value in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Advice => "advice",
        }
    }

    /// `error`, `warning` or `note`: the word in text.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Advice => "note",
        }
    }

    /// The colour of that word.
    #[must_use]
    pub fn style(self) -> Style {
        let colour = match self {
            Severity::Error => AnsiColor::BrightRed,
            Severity::Warning => AnsiColor::BrightYellow,
            Severity::Advice => AnsiColor::BrightGreen,
        };
        colour.on_default().bold()
    }
}
