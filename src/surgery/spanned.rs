//! [`Spanned`]: a value and where the YAML has it, and labels at these places.

use crate::diagnostic::{Diagnostic, Span};

/// The label at the definition of a value that is used elsewhere.
pub(crate) const WRITTEN: &str = "written here";

/// A value and its place in the YAML.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it is written.
    pub span: Span,
    /// Where it is used, if through an alias or a merge key.
    pub alias: Option<Span>,
}

impl<T> Spanned<T> {
    /// Labels this value where it is used, and where it is written if it comes through an alias or a merge key. For values
    /// that are wrong in their context.
    #[must_use]
    pub fn label_at_use(&self, diagnostic: Diagnostic, message: impl Into<String>) -> Diagnostic {
        match &self.alias {
            Some(alias) => diagnostic.label(alias.clone(), message).label(self.span.clone(), WRITTEN),
            None => diagnostic.label(self.span.clone(), message),
        }
    }

    /// Labels this value where it is written, and where it is used if it comes through an alias or a merge key. For values
    /// that are wrong in themselves.
    pub(super) fn label_at_definition(
        &self,
        diagnostic: Diagnostic,
        message: impl Into<String>,
    ) -> Diagnostic {
        let diagnostic = diagnostic.label(self.span.clone(), message);
        match &self.alias {
            Some(alias) => diagnostic.label(alias.clone(), "used here"),
            None => diagnostic,
        }
    }

    /// Where it is used.
    pub(super) fn used(&self) -> &Span {
        self.alias.as_ref().unwrap_or(&self.span)
    }

    /// The same place with another value.
    pub(super) fn with<U>(&self, value: U) -> Spanned<U> {
        Spanned { value, span: self.span.clone(), alias: self.alias.clone() }
    }
}
