//! What was asked: a YAML file, parsed into a spanned tree and lowered by hand to [`Operation`]s.
//!
//! ```text
//! bytes ──read──▶ text ──tree──▶ Node ──lower──▶ Operation
//!                          └── syntax ──┴──▶ Diagnostic ◀── suggest
//! ```
//!
//! | part | what it does |
//! |---|---|
//! | `language` | the tables of operations and fields |
//! | `tree/` | YAML to a tree with spans; syntax errors |
//! | `lower/` | the tree to operations and diagnostics |
//! | `suggest/` | what was probably meant: text in, help out |
//! | `pattern/` | the glob dialect: parsing, matching, captures |
//! | `schema` | the JSON Schema for editors |
//!
//! `lower` uses `suggest`, never the reverse. Nothing here knows checkpoints: patterns are parsed, not matched; donors are
//! paths, not files.

mod file;
mod language;
mod lower;
mod operation;
mod pattern;
mod read;
mod schema;
mod spanned;
mod suggest;
#[cfg(test)]
mod tests;
mod tree;

pub use file::SurgeryFile;
pub(crate) use language::{Granularity, Method, OpName};
pub use operation::Kind;
pub(crate) use operation::Operation;
pub use pattern::Matcher;
pub(crate) use pattern::{Pattern, Template};
pub use schema::schema;
pub(crate) use spanned::{Spanned, WRITTEN};
