//! Limits that keep a plan small, whatever the file.

use std::sync::Arc;

use super::scope::Scope;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::surgery::Operation;

/// Maximum number of diagnostics reported; errors first, the rest only counted.
const MAX_DIAGNOSTICS: usize = 200;

/// Maximum number of tensors that all operations together may match, each counted once per operation: twenty operations
/// on all of 250,000 tensors.
const MAX_EDITS: usize = 5_000_000;

/// Whether there are as many errors as are reported.
pub(super) fn enough_errors<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>) -> bool {
    diagnostics.into_iter().filter(|one| one.severity() == Severity::Error).count() >= MAX_DIAGNOSTICS
}

/// Keeps the first diagnostics in the order they have, errors before others, and counts the rest in the last one's help.
pub(super) fn shorten(diagnostics: &mut Vec<Diagnostic>) {
    let Some(more @ 1..) = diagnostics.len().checked_sub(MAX_DIAGNOSTICS) else { return };
    let mut order: Vec<usize> = (0..diagnostics.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(diagnostics[at].severity()));
    let mut kept = vec![false; diagnostics.len()];
    order.into_iter().take(MAX_DIAGNOSTICS).for_each(|at| kept[at] = true);
    let mut kept = kept.into_iter();
    diagnostics.retain(|_| kept.next().unwrap_or_default());
    if let Some(last) = diagnostics.last_mut() {
        let help = last.help.take().map_or_else(String::new, |help| help + "; ");
        last.help = Some(format!("{help}{more} more diagnostics are not shown"));
    }
}

/// Refuses a file whose operations together match more than can be planned in bounded memory.
pub(super) fn too_many_edits(operations: &[Operation], scopes: &[Arc<Scope>]) -> Option<Diagnostic> {
    let mut sum = 0;
    let (over, _) = operations.iter().zip(scopes).find(|(_, scope)| {
        sum += scope.matched.len();
        sum > MAX_EDITS
    })?;
    let message =
        format!("the operations up to here match more than {MAX_EDITS} tensors, counted once per operation");
    let diagnostic = Diagnostic::new(Code::TooManyEdits, message)
        .help("merge operations that do the same, narrow their patterns, or split the file");
    Some(over.pattern.label_at_use(diagnostic, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_kept_before_others_and_the_rest_is_counted() {
        let mut all: Vec<Diagnostic> = (0..300)
            .map(|n| {
                let code = if n % 3 == 0 { Code::NoMatch } else { Code::NoEffect };
                Diagnostic::new(code, format!("{n}")).help("do")
            })
            .collect();
        shorten(&mut all);
        assert_eq!(all.len(), MAX_DIAGNOSTICS);
        assert_eq!(all.iter().filter(|one| one.code == Code::NoMatch).count(), 100);
        assert!(all.is_sorted_by_key(|one| one.message.parse::<usize>().unwrap()), "still in order");
        assert_eq!(all[MAX_DIAGNOSTICS - 1].help.as_deref(), Some("do; 100 more diagnostics are not shown"));
        let few = all.clone();
        shorten(&mut all);
        assert_eq!(all, few);
    }
}
