//! [`Captures`] from a base's key, and the [`Template`] of a donor's key that takes them.

/// What each `*` of a pattern captures, from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captures<'k>(pub Vec<&'k str>);

/// `source_key`: text with holes for captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
}

impl Template {
    /// Any text is a template.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }

    /// As written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number of `*`.
    #[must_use]
    pub fn wildcards(&self) -> usize {
        self.text.matches('*').count()
    }

    /// The donor's key: the captures in place of the `*`, in order. A `*` without a capture stays.
    #[must_use]
    pub fn fill(&self, captures: &Captures<'_>) -> String {
        let mut captures = captures.0.iter();
        let mut key = String::with_capacity(self.text.len() + 8);
        for (at, text) in self.text.split('*').enumerate() {
            if at > 0 {
                key.push_str(captures.next().copied().unwrap_or("*"));
            }
            key.push_str(text);
        }
        key
    }
}
