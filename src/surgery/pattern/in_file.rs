//! The place of a pattern's part in the file.

use super::super::spanned::Spanned;
use super::glob::Pattern;
use crate::diagnostic::Span;

impl Spanned<Pattern> {
    /// The place of a part of the pattern if the file has the pattern verbatim, else of the whole pattern.
    #[must_use]
    pub fn part(&self, part: &Span, file: &str) -> Spanned<()> {
        let start = offset_in_file(&self.span, self.value.as_str(), file);
        let inside = start.map(|start| start + part.start..start + part.end);
        Spanned { value: (), span: inside.unwrap_or_else(|| self.span.clone()), alias: self.alias.clone() }
    }
}

/// The offset of a scalar's text in the file; `None` if escapes or folding make them differ.
pub(in crate::surgery) fn offset_in_file(span: &Span, text: &str, file: &str) -> Option<usize> {
    let written = file.get(span.clone())?;
    let quotes = usize::from(written.starts_with(['"', '\'']));
    (written.get(quotes..written.len() - quotes)? == text).then_some(span.start + quotes)
}
