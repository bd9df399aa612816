//! [`GuideError`]: why an answer cannot be constrained.

/// Why an answer cannot be constrained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::serve) enum GuideError {
    /// The model has no end-of-text token.
    #[error("this model does not support `response_format`: it has no end-of-text token")]
    NoEndOfText,
    /// The library does not support the tokenizer.
    #[error("this model's tokenizer does not support `response_format`: {0}")]
    Tokenizer(String),
    /// The schema exceeds a size limit.
    #[error(
        "the JSON schema is too large (limits: {values} values, {entries} entries per object or list, {depth} levels)"
    )]
    TooLarge {
        /// Maximum number of values.
        values: usize,
        /// Maximum number of entries of an object or a list.
        entries: usize,
        /// Maximum nesting depth.
        depth: usize,
    },
    /// Compiling the schema exceeds the stack.
    #[error("the JSON schema is too complex")]
    TooComplex,
    /// No text matches the schema.
    #[error("no text matches the JSON schema")]
    Unsatisfiable,
    /// The library does not support the schema.
    #[error("unsupported JSON schema: {0}")]
    Schema(String),
    /// The library failed while the answer was decoded.
    #[error("the answer cannot follow its JSON schema: {0}")]
    Decoding(String),
}

/// The first line of a message of the library.
pub(super) fn first_line(error: &str) -> String {
    error.lines().next().unwrap_or_default().to_owned()
}
