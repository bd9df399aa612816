//! Plans as text and JSON.

pub mod json;
mod subject;
pub mod text;
