//! Regions as runs of elements of a flattened tensor.

use std::ops::Range;

use crate::plan::Region;

/// Calls `each` with every run of the region inside `window` (elements of the flattened tensor), ascending and relative to
/// the window's start.
pub(super) fn runs(
    region: &Region,
    shape: &[usize],
    window: Range<usize>,
    mut each: impl FnMut(Range<usize>),
) {
    let Region::Slices { axis, ranges } = region else {
        return each(0..window.len());
    };
    let inner: usize = shape.iter().skip(axis + 1).product();
    let block = inner * shape.get(*axis).copied().unwrap_or(0);
    if block == 0 || window.is_empty() {
        return;
    }
    for outer in window.start / block..window.end.div_ceil(block) {
        let base = outer * block;
        let low = window.start.saturating_sub(base);
        let high = (window.end - base).min(block);
        let first = ranges.partition_point(|range| range.end * inner <= low);
        for range in ranges.iter().skip(first).take_while(|range| range.start * inner < high) {
            let start = (range.start * inner).max(low);
            let end = (range.end * inner).min(high);
            each(base + start - window.start..base + end - window.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(region: &Region, shape: &[usize], window: Range<usize>, expected: &[usize]) {
        let mut hit = Vec::new();
        runs(region, shape, window.clone(), |run| hit.extend(run.map(|i| i + window.start)));
        assert_eq!(hit, expected);
    }

    fn slices(axis: usize, ranges: &[(usize, usize)]) -> Region {
        Region::Slices { axis, ranges: ranges.iter().map(|&(start, end)| start..end).collect() }
    }

    #[test]
    fn rows_are_whole_runs() {
        check(&slices(0, &[(0, 1), (2, 4)]), &[4, 3], 0..12, &[0, 1, 2, 6, 7, 8, 9, 10, 11]);
        check(&slices(0, &[(0, 1), (2, 4)]), &[4, 3], 2..7, &[2, 6]);
        check(&slices(0, &[(3, 5)]), &[8], 0..8, &[3, 4]);
    }

    #[test]
    fn columns_repeat_in_every_row() {
        check(&slices(1, &[(1, 2)]), &[3, 4], 0..12, &[1, 5, 9]);
        check(&slices(1, &[(0, 1), (3, 4)]), &[3, 4], 3..9, &[3, 4, 7, 8]);
        check(&slices(1, &[(1, 2)]), &[2, 2, 2], 0..8, &[2, 3, 6, 7]);
    }

    #[test]
    fn the_whole_is_the_window() {
        check(&Region::Whole, &[], 0..1, &[0]);
        check(&Region::Whole, &[4, 4], 3..5, &[3, 4]);
    }

    #[test]
    fn nothing_is_zeroed_in_an_empty_tensor() {
        check(&slices(0, &[(1, 2)]), &[4, 0], 0..0, &[]);
        check(&slices(1, &[(1, 2)]), &[0, 4], 0..0, &[]);
    }
}
