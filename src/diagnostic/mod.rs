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
mod sanitize;
mod sarif;
mod severity;
mod size;
pub(crate) mod system;
mod types;
mod uri;
pub(crate) mod words;

pub use code::Code;
pub use explain::{explain, page};
pub use github::github;
pub use json::json;
pub use layout::columns;
pub(crate) use layout::{rows, wrap};
pub use look::Look;
pub(crate) use look::{BOLD, DIM};
pub(crate) use nearest::{did_you_mean, is_near, nearest, normalized};
pub(crate) use position::line_starts;
pub use render::render;
pub(crate) use render::{render_error, summary};
pub use sarif::sarif;
pub use severity::Severity;
pub(crate) use size::bytes;
pub use types::{Diagnostic, Label, Source, Span};
