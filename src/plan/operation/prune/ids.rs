//! The ids of a `prune`.

use crate::diagnostic::{Code, Diagnostic, words};
use crate::plan::planned_operation::PlannedOperation;
use crate::surgery::{Granularity, Operation, Spanned};

/// The ids of an operation: each once, ascending.
pub(super) type Ids<'f> = Vec<&'f Spanned<u64>>;

/// Maximum number of repeated ids that a note names, and labels.
const MAX_REPEATED: usize = 16;

/// Removes repeated ids, with one note that shows each repetition.
pub(super) fn distinct<'f>(ids: &'f Spanned<Vec<Spanned<u64>>>, planned: &mut PlannedOperation) -> Ids<'f> {
    let mut distinct: Ids<'f> = Vec::new();
    let mut sorted: Vec<&Spanned<u64>> = ids.value.iter().collect();
    sorted.sort_by_key(|id| id.value);
    let mut repeated: Vec<&Spanned<u64>> = Vec::new();
    for id in sorted {
        match distinct.last() {
            Some(last) if last.value == id.value => repeated.push(id),
            _ => distinct.push(id),
        }
    }
    if !repeated.is_empty() {
        let mut numbers: Vec<String> = repeated.iter().map(|id| id.value.to_string()).collect();
        numbers.dedup();
        let subject = match &numbers[..] {
            [one] => format!("id {one} is"),
            many => {
                let shown = many.len().min(MAX_REPEATED);
                format!("ids {} are", words::list(&many[..shown], many.len() - shown))
            }
        };
        let mut diagnostic = Diagnostic::new(Code::DuplicateId, format!("{subject} listed more than once"))
            .help("remove the repetition; each id counts once");
        for id in repeated.into_iter().take(MAX_REPEATED) {
            diagnostic = id.label_at_use(diagnostic, "again");
        }
        planned.report(diagnostic);
    }
    distinct
}

/// Refuses an operation that would zero nothing.
pub(super) fn nothing(
    operation: &Operation,
    granularity: Granularity,
    help: &str,
    planned: &mut PlannedOperation,
) {
    let message = format!("the pattern matches no tensor that `granularity: {granularity}` can zero");
    let diagnostic = Diagnostic::new(Code::NoPrunableTensor, message).help(help);
    planned.report(operation.pattern.label_at_use(diagnostic, ""));
}

/// The ids below `end`; others are refused elsewhere.
pub(super) fn below(ids: &Ids<'_>, end: usize) -> Vec<usize> {
    ids.iter().filter_map(|id| usize::try_from(id.value).ok()).filter(|&id| id < end).collect()
}

/// What there is to choose from, for messages: "channels 0–191".
pub(super) fn range(noun: &str, count: u64) -> String {
    match count {
        0 => format!("no {noun}"),
        1 => format!("{noun} 0"),
        _ => format!("{noun} 0–{}", count - 1),
    }
}
