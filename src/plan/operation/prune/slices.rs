//! The regions of a `prune`: rows or columns of equal width.

use super::ids::{Ids, below};
use crate::plan::action::Region;

/// The regions of an operation's ids: modules of the same sizes share them.
pub(super) struct Slices {
    ids: Vec<usize>,
    made: Vec<(Sizes, Region)>,
}

/// Axis, last offset, ids below, width of a slice.
type Sizes = (usize, usize, usize, usize);

impl Slices {
    pub(super) fn new(ids: &Ids<'_>) -> Self {
        Self { ids: below(ids, usize::MAX), made: Vec::new() }
    }

    /// The slices of the ids below `end`, each `width` wide, from each offset.
    pub(super) fn of(&mut self, axis: usize, offsets: &[usize], end: usize, width: usize) -> Region {
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
