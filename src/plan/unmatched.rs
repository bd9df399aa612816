//! Patterns that match no tensor, as diagnostics.

use rayon::prelude::*;

use super::scope::Scope;
use super::suggest::{KeyNames, help};
use crate::checkpoint::TensorIndex;
use crate::diagnostic::{Code, Diagnostic, words};
use crate::surgery::{Operation, Pattern, Spanned, SurgeryFile};

/// Refuses an operation whose pattern matches nothing, or whose excludes leave nothing.
pub(super) fn operation(names: &KeyNames<'_>, operation: &Operation, scope: &Scope) -> Diagnostic {
    if scope.excluded == 0 {
        return pattern(names, &operation.pattern);
    }
    let keys = words::count(scope.excluded, "key");
    let verb = if scope.excluded == 1 { "matches" } else { "match" };
    let message = format!("`exclude` removes every match: {keys} {verb} the pattern");
    let mut diagnostic =
        Diagnostic::new(Code::NoMatch, message).help("narrow `exclude`, or remove the operation");
    if let Some(exclude) = operation.exclude.first() {
        diagnostic = exclude.label_at_use(diagnostic, "");
    }
    operation.pattern.label_at_use(diagnostic, "the pattern")
}

/// Refuses the patterns of operations that could not be read whole, where they match nothing.
pub(super) fn fragments(file: &SurgeryFile, index: &TensorIndex) -> Vec<Diagnostic> {
    let names = KeyNames::new(index);
    let patterns: Vec<_> = file.fragments.iter().filter_map(|fragment| fragment.pattern.as_ref()).collect();
    let unmatched = patterns.par_iter().filter(|pattern| !names.any(&pattern.value));
    unmatched.map(|pattern| self::pattern(&names, pattern)).collect()
}

fn pattern(names: &KeyNames<'_>, pattern: &Spanned<Pattern>) -> Diagnostic {
    let text = pattern.value.as_str();
    let diagnostic = Diagnostic::new(Code::NoMatch, format!("`{text}` matches no tensor"));
    pattern.label_at_use(diagnostic.help(help(names, text)), "")
}
