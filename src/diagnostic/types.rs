//! [`Diagnostic`]: one mistake, or one thing worth knowing, as data.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::code::Code;
use super::severity::Severity;

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

/// A place in the YAML, with a message about it (may be empty: then the place speaks for itself).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// A lowercase fragment, names in backticks.
    pub message: String,
}

/// One mistake, or one thing worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind of mistake.
    pub code: Code,
    /// What is wrong: a lowercase fragment without a period, names in backticks.
    pub message: String,
    /// Places in the YAML, the primary one first. Empty when the mistake is not in the YAML.
    pub labels: Vec<Label>,
    /// How to fix it: an imperative.
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

    /// Sets the help.
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

    /// `error[surgery::no_match]`.
    pub(super) fn tag(&self) -> String {
        format!("{}[{}]", self.severity().word(), self.code)
    }

    /// Message and help, for formats that have no field for help.
    pub(super) fn with_help(&self) -> String {
        match &self.help {
            Some(help) => format!("{}\nhelp: {help}", self.message),
            None => self.message.clone(),
        }
    }
}

/// Severity, code and message in one line: `error[surgery::no_match]: …`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.tag(), self.message)
    }
}

impl std::error::Error for Diagnostic {}
