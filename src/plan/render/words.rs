//! Wording that messages share: counts, and lists of keys and numbers.

use std::fmt::Write as _;

use super::fold_keys::{Folded, fold, runs};
use crate::diagnostic::Look;

/// Names that a list spells out; the rest is only counted.
pub(in crate::plan) const MAX_NAMES: usize = 3;

/// Maximum number of names that are folded; the rest is only counted.
const MAX_FOLDED: usize = 10_000;

/// "`a.{0–35}`, `b` and 5 more": names folded by their numbers, the first few spelled out.
pub(in crate::plan) fn names<S: AsRef<str>>(names: &[S]) -> String {
    detailed(names.iter().map(|name| (name.as_ref(), "")), names.len())
}

/// The same, with something in parentheses after each name that has it; `total` counts the names.
pub(in crate::plan) fn detailed<'n>(names: impl Iterator<Item = (&'n str, &'n str)>, total: usize) -> String {
    let folded = fold(names.take(MAX_FOLDED));
    let shown = folded.iter().take(MAX_NAMES);
    let named: usize = shown.clone().map(Folded::count).sum();
    // A name that occurs twice counts once.
    let total = if total > MAX_FOLDED { total } else { folded.iter().map(Folded::count).sum() };
    let texts: Vec<String> = shown
        .map(|fold| match fold.detail {
            "" => format!("`{}`", fold.name(Look::PLAIN)),
            detail => format!("`{}` ({detail})", fold.name(Look::PLAIN)),
        })
        .collect();
    list(&texts, total - named)
}

/// "a, b and 5 more".
pub(in crate::plan) fn list(items: &[String], more: usize) -> String {
    let mut text = String::new();
    for (i, item) in items.iter().enumerate() {
        let joint = match i {
            0 => "",
            _ if i + 1 == items.len() && more == 0 => " and ",
            _ => ", ",
        };
        let _ = write!(text, "{joint}{item}");
    }
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

/// A parameter as short as it can be written: `0.5`, `2`, `1e-46`.
pub(in crate::plan) fn parameter(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// "1 tensor", "3 tensors".
pub(in crate::plan) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// "0–35", "0–3, 8", from ascending numbers.
pub(in crate::plan) fn ranges(numbers: &[u64]) -> String {
    runs(numbers, ", ", Look::PLAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_short() {
        for (value, text) in [(2.0, "2"), (-0.5, "-0.5"), (1e-46, "1e-46"), (1e22, "1e22"), (120.0, "120")] {
            assert_eq!(parameter(value), text);
        }
    }

    #[test]
    fn lists_spell_out_three_names_and_count_the_rest() {
        assert_eq!(names(&["a"]), "`a`");
        assert_eq!(names(&["a", "b"]), "`a` and `b`");
        assert_eq!(names(&["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(names(&["a", "b", "c", "d", "e"]), "`a`, `b`, `c` and 2 more");
        assert_eq!(names(&["l.0.a", "l.1.a", "l.2.a", "b", "l.1.a"]), "`l.{0–2}.a` and `b`");
    }
}
