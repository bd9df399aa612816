//! `prune`: structure set to zero, shapes kept. Here what the three granularities share: ids and regions.

mod channels;
mod heads;
mod layer;
mod linear;
mod reached;

use super::Region;
use super::draft::{Context, Draft};
use super::scope::Scope;
use crate::diagnostic::{Code, Diagnostic, words};
use crate::surgery::{Granularity, Operation, Spanned};

/// The ids of an operation: each once, ascending.
type Ids<'f> = Vec<&'f Spanned<u64>>;

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    granularity: Granularity,
    ids: &Spanned<Vec<Spanned<u64>>>,
    draft: &mut Draft,
) {
    let ids = distinct(ids, draft);
    match granularity {
        Granularity::Layer => layer::plan(context, operation, scope, &ids, draft),
        Granularity::AttentionHead => heads::plan(context, operation, scope, &ids, draft),
        Granularity::MlpChannel => channels::plan(context, operation, scope, &ids, draft),
    }
}

/// A list of repeated ids shows so many, in words and in labels.
const MOST_SHOWN: usize = 16;

/// Collapses repeated ids, with one advice that shows each repetition.
fn distinct<'f>(ids: &'f Spanned<Vec<Spanned<u64>>>, draft: &mut Draft) -> Ids<'f> {
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
                let shown = many.len().min(MOST_SHOWN);
                format!("ids {} are", words::list(&many[..shown], many.len() - shown))
            }
        };
        let mut diagnostic = Diagnostic::new(Code::DuplicateId, format!("{subject} listed more than once"))
            .help("each id counts once");
        for id in repeated.into_iter().take(MOST_SHOWN) {
            diagnostic = id.label_at_use(diagnostic, "again");
        }
        draft.say(diagnostic);
    }
    distinct
}

/// The regions of an operation's ids: modules of the same sizes share them.
struct Slices {
    ids: Vec<usize>,
    made: Vec<(Sizes, Region)>,
}

/// Axis, last offset, ids below, width of a slice.
type Sizes = (usize, usize, usize, usize);

impl Slices {
    fn new(ids: &Ids<'_>) -> Self {
        Self { ids: below(ids, usize::MAX), made: Vec::new() }
    }

    /// The slices of the ids below `end`, each `width` wide, behind each offset.
    fn of(&mut self, axis: usize, offsets: &[usize], end: usize, width: usize) -> Region {
        let sizes = (axis, offsets.last().copied().unwrap_or_default(), end, width);
        if let Some((_, region)) = self.made.iter().rev().take(8).find(|(made, _)| *made == sizes) {
            return region.clone();
        }
        let ids: Vec<usize> = self.ids.iter().copied().take_while(|id| *id < end).collect();
        let region = slices(axis, offsets, &ids, width);
        self.made.push((sizes, region.clone()));
        region
    }
}

/// The region of some ascending slices of equal width, shifted by an offset; adjacent ones are joined.
fn slices(axis: usize, offsets: &[usize], ids: &[usize], width: usize) -> Region {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for start in offsets.iter().flat_map(|offset| ids.iter().map(move |id| offset + id * width)) {
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = start + width,
            _ => ranges.push(start..start + width),
        }
    }
    Region::Slices { axis, ranges: ranges.into() }
}

/// Says that nothing at all would be zeroed.
fn nothing(operation: &Operation, granularity: Granularity, help: &str, draft: &mut Draft) {
    let message = format!("the pattern reaches no tensor that `{granularity}` can zero");
    let diagnostic = Diagnostic::new(Code::NoPrunableTensor, message).help(help);
    draft.say(operation.pattern.label_at_use(diagnostic, ""));
}

/// Ids as positions; those beyond the end are left out (they are refused elsewhere).
fn below(ids: &Ids<'_>, end: usize) -> Vec<usize> {
    ids.iter().filter_map(|id| usize::try_from(id.value).ok()).filter(|&id| id < end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_slices_are_one_range() {
        let region = slices(1, &[0], &[0, 1, 3], 16);
        assert_eq!(region, Region::Slices { axis: 1, ranges: [0..32, 48..64].into() });
    }

    #[test]
    fn a_fused_matrix_has_the_slices_in_each_half() {
        let region = slices(0, &[0, 96], &[7, 95], 1);
        assert_eq!(region, Region::Slices { axis: 0, ranges: [7..8, 95..96, 103..104, 191..192].into() });
        let rows = std::iter::once(0..4).collect();
        assert_eq!(slices(0, &[0, 2], &[0, 1], 1), Region::Slices { axis: 0, ranges: rows });
    }
}
