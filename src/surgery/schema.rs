//! The JSON Schema of the file, for editors.

/// The schema (draft 2020-12).
#[must_use]
pub fn schema() -> serde_json::Value {
    todo!()
}
