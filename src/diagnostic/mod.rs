//! What can be wrong: a [`Diagnostic`] names one mistake, with a [`Code`], labelled places in the YAML and a help.
//!
//! Diagnostics are data; the renderers turn a list of them into text, JSON, SARIF or GitHub annotations. Nothing here
//! knows of checkpoints or plans.

mod code;
mod excerpt;
mod explain;
pub(crate) mod fold;
mod github;
mod json;
mod layout;
mod look;
mod nearest;
mod position;
mod render;
mod sarif;
pub mod system;
mod uri;
pub(crate) mod words;

pub use code::Code;
pub use explain::{explain, page};
pub use github::github;
pub use json::json;
pub use layout::{bytes, columns, rows, wrap};
pub use look::{BOLD, DIM, Look};
pub(crate) use nearest::{did_you_mean, is_near, nearest, normalized};
pub(crate) use position::line_starts;
pub use render::{render, summary};
pub use sarif::sarif;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Byte offsets in the YAML text (the byte order mark already stripped).
pub type Span = Range<usize>;

/// The YAML text that spans point into.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file as it was named on the command line.
    pub path: PathBuf,
    /// Its whole text, without a byte order mark.
    pub text: Arc<str>,
}

/// How much a diagnostic weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; never counts against a file.
    Advice,
    /// Probably not what was meant; an error under `--deny warnings`.
    Warning,
    /// No plan.
    Error,
}

/// A place in the YAML and what is to be said about it (may be empty: then the place speaks for itself).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// A lowercase fragment, names in backticks.
    pub message: String,
}

/// One mistake, or one thing worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which kind of mistake.
    pub code: Code,
    /// What is wrong: a lowercase fragment without a period, names in backticks.
    pub message: String,
    /// Where, in the YAML; the first label is the primary one. Empty when the mistake is not in the YAML.
    pub labels: Vec<Label>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without place or help.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), labels: Vec::new(), help: None }
    }

    /// Adds a labelled place.
    #[must_use]
    pub fn label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: message.into() });
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The severity of its code.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// Message and help, for places that know no help of their own.
    fn with_help(&self) -> String {
        match &self.help {
            Some(help) => format!("{}\nhelp: {help}", self.message),
            None => self.message.clone(),
        }
    }
}
