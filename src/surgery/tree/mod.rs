//! The YAML as a tree with spans, before its meaning is known; YAML errors as diagnostics.
//!
//! serde-saphyr parses. [`parse`] keeps what it says, [`merge`] resolves merge keys, and [`syntax`] explains its errors.

mod merge;
mod node;
mod parse;
mod syntax;

pub(super) use merge::is_merge;
pub(super) use node::{Node, Value};
pub(super) use parse::parse;
pub(super) use syntax::{diagnose, not_utf8};
