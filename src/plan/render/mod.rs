//! Plans as text and JSON.

pub(crate) mod json;
mod subject;
pub(crate) mod text;
