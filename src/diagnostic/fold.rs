//! Folds names that differ only in numbers: `model.layers.{0–35}.mlp.up_proj`.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use super::Look;

/// Names with equal details, folded: every hole of the name takes every number of its set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Folded<T> {
    /// The text around the holes: one piece more than there are holes.
    pieces: Vec<String>,
    /// For each hole, its numbers, ascending.
    holes: Vec<Vec<u64>>,
    /// The detail of each of the names.
    pub(crate) detail: T,
}

/// Folds names by the dotted components that are numbers, in order of first appearance. Names with different details are
/// never folded together, and a fold represents exactly the names in it. Names must be distinct.
pub(crate) fn fold<'n, T: Clone + Eq + Hash>(
    names: impl IntoIterator<Item = (&'n str, T)>,
) -> Vec<Folded<T>> {
    let mut places = HashMap::new();
    let mut groups = Vec::new();
    for (name, detail) in names {
        let (template, numbers) = split(name);
        let place = *places.entry((template, detail)).or_insert_with_key(|group| {
            groups.push((group.clone(), Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(numbers);
    }
    let mut folded = Vec::new();
    for ((template, detail), numbers) in groups {
        let pieces: Vec<String> = template.split(HOLE).map(str::to_owned).collect();
        let tuples = numbers.iter().map(Vec::as_slice).collect();
        for holes in products(tuples) {
            folded.push(Folded { pieces: pieces.clone(), holes, detail: detail.clone() });
        }
    }
    folded
}

impl<T> Folded<T> {
    /// Number of names that it represents.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.holes.iter().map(Vec::len).product()
    }

    /// The name, with each set of more than one number in braces.
    #[must_use]
    pub(crate) fn name(&self, look: Look) -> String {
        let mut name = String::new();
        for (at, piece) in self.pieces.iter().enumerate() {
            if let Some(numbers) = at.checked_sub(1).and_then(|hole| self.holes.get(hole)) {
                let (open, close) = if numbers.len() > 1 { ("{", "}") } else { ("", "") };
                name.extend([open, &runs(numbers, ",", look), close]);
            }
            name.push_str(piece);
        }
        name
    }
}

/// Ascending numbers with runs of three and more as ranges: `0–3,7`. Beyond eight runs, the middle is left out.
#[must_use]
pub(crate) fn runs(numbers: &[u64], separator: &str, look: Look) -> String {
    const MAX_RUNS: usize = 8;
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let dash = look.either("–", "-");
    let mut texts: Vec<String> = (runs.iter())
        .map(|&(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}{separator}{last}"),
            _ => format!("{first}{dash}{last}"),
        })
        .collect();
    if texts.len() > MAX_RUNS {
        texts.splice(MAX_RUNS - 2..texts.len() - 1, [look.either("…", "...").to_owned()]);
    }
    texts.join(separator)
}

/// Placeholder of a number in a template. No name of a tensor has control characters.
const HOLE: char = '\0';

/// A name's template, and its numbers. A number with leading zeros is text.
fn split(name: &str) -> (String, Vec<u64>) {
    let (mut template, mut numbers) = (String::with_capacity(name.len()), Vec::new());
    for (at, component) in name.split('.').enumerate() {
        if at > 0 {
            template.push('.');
        }
        let plain = component == "0" || component.starts_with(|first| matches!(first, '1'..='9'));
        match component.parse::<u64>() {
            Ok(number) if plain => {
                numbers.push(number);
                template.push(HOLE);
            }
            _ => template.push_str(component),
        }
    }
    (template, numbers)
}

/// One set of numbers per hole.
type Product = Vec<Vec<u64>>;

/// Tuples as few products of sets: numbers in the first place that go with the same rest are joined.
fn products(tuples: Vec<&[u64]>) -> Vec<Product> {
    let mut by_first: BTreeMap<u64, Vec<&[u64]>> = BTreeMap::new();
    for tuple in tuples {
        let Some((&first, rest)) = tuple.split_first() else { return vec![Vec::new()] };
        by_first.entry(first).or_default().push(rest);
    }
    let mut by_rest: Vec<(Vec<Product>, Vec<u64>)> = Vec::new();
    for (first, rests) in by_first {
        let rest = products(rests);
        match by_rest.iter_mut().find(|(known, _)| *known == rest) {
            Some((_, firsts)) => firsts.push(first),
            None => by_rest.push((rest, vec![first])),
        }
    }
    let with_firsts = |(rest, firsts): (Vec<Product>, Vec<u64>)| {
        rest.into_iter().map(move |holes| {
            let mut all = vec![firsts.clone()];
            all.extend(holes);
            all
        })
    };
    by_rest.into_iter().flat_map(with_firsts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: &[&str]) {
        let folded = fold(names.iter().map(|&name| (name, ())));
        let seen: Vec<String> = folded.iter().map(|fold| fold.name(Look::PLAIN)).collect();
        assert_eq!(seen, expected);
        assert_eq!(folded.iter().map(Folded::count).sum::<usize>(), names.len());
    }

    #[test]
    fn layers_fold_into_a_range() {
        check(&["l.0.w", "l.1.w", "l.10.w", "l.2.w"], &["l.{0–2,10}.w"]);
    }

    #[test]
    fn a_name_alone_stays_as_it_is() {
        check(&["model.norm.weight", "l.7.w"], &["model.norm.weight", "l.7.w"]);
    }

    #[test]
    fn experts_of_every_layer_fold_twice() {
        let names: Vec<String> = (0..4).flat_map(|l| (0..3).map(move |e| format!("l.{l}.e.{e}.w"))).collect();
        check(&names.iter().map(String::as_str).collect::<Vec<_>>(), &["l.{0–3}.e.{0–2}.w"]);
    }

    #[test]
    fn a_fold_stands_for_exactly_its_names() {
        check(&["l.0.e.0.w", "l.0.e.1.w", "l.1.e.0.w"], &["l.0.e.{0,1}.w", "l.1.e.0.w"]);
    }

    #[test]
    fn numbers_with_leading_zeros_are_text() {
        check(&["l.00.w", "l.01.w"], &["l.00.w", "l.01.w"]);
    }

    #[test]
    fn details_that_differ_keep_names_apart() {
        let folded = fold([("l.0.w", 1), ("l.1.w", 2), ("l.2.w", 1)]);
        let seen: Vec<_> = folded.iter().map(|fold| (fold.name(Look::PLAIN), fold.detail)).collect();
        assert_eq!(seen, [("l.{0,2}.w".to_owned(), 1), ("l.1.w".to_owned(), 2)]);
    }

    #[test]
    fn many_runs_are_cut_in_the_middle() {
        let odd: Vec<u64> = (0..20).map(|n| 2 * n + 1).collect();
        assert_eq!(runs(&odd, ",", Look::PLAIN), "1,3,5,7,9,11,…,39");
        assert_eq!(runs(&[0, 1, 2], ", ", Look { unicode: false, ..Look::PLAIN }), "0-2");
    }
}
