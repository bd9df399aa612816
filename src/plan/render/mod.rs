//! Plans as text and JSON, and the words that messages share.

pub(crate) mod fold_keys;
pub mod json;
mod subject;
pub mod text;
pub(super) mod words;
