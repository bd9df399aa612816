//! Wording shared by every message: counts, lists, number ranges and excerpts.

use std::fmt::{Display, Write as _};

use super::Look;
use super::fold::{Folded, fold, runs};

/// How many names a list spells out; the rest is only counted.
pub(crate) const MAX_NAMES: usize = 3;

/// How many names are folded; the rest is only counted.
const MAX_FOLDED: usize = 10_000;

/// Characters of the user's text that a message repeats.
const MAX_EXCERPT: usize = 80;

/// "1 tensor", "3 tensors".
pub(crate) fn count<N: Copy + Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    format!("{n} {}", plural(n, noun))
}

/// "tensor" if there is one, else "tensors".
pub(crate) fn plural<N: Copy + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let ending = if n == N::from(1) { "" } else { "s" };
    format!("{noun}{ending}")
}

/// "`a.{0–35}`, `b` and 5 more": names folded by their numbers, the first few spelled out.
pub(crate) fn names<S: AsRef<str>>(names: &[S]) -> String {
    names_with_details(names.iter().map(|name| (name.as_ref(), "")), names.len())
}

/// Like [`names`], with a detail in parentheses after each name that has one; `total` counts the names.
pub(crate) fn names_with_details<'n>(
    names: impl Iterator<Item = (&'n str, &'n str)>,
    total: usize,
) -> String {
    let folded = fold(names.take(MAX_FOLDED));
    let shown = folded.iter().take(MAX_NAMES);
    let spelled_out: usize = shown.clone().map(Folded::count).sum();
    // Folding drops repeated names.
    let total = if total > MAX_FOLDED { total } else { folded.iter().map(Folded::count).sum() };
    let texts: Vec<String> = shown
        .map(|fold| match fold.detail {
            "" => format!("`{}`", fold.name(Look::PLAIN)),
            detail => format!("`{}` ({detail})", fold.name(Look::PLAIN)),
        })
        .collect();
    list(&texts, total - spelled_out)
}

/// "a, b and 5 more".
pub(crate) fn list(items: &[String], more: usize) -> String {
    let mut text = joined(items, if more == 0 { " and " } else { ", " });
    if more > 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, " and {more} more");
    }
    text
}

/// "`a`, `b` and `c`".
pub(crate) fn list_and<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    joined(&in_backticks(words), " and ")
}

/// "`a`, `b` or `c`".
pub(crate) fn list_or<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    joined(&in_backticks(words), " or ")
}

fn in_backticks<'w>(words: impl IntoIterator<Item = &'w str>) -> Vec<String> {
    words.into_iter().map(|word| format!("`{word}`")).collect()
}

fn joined(items: &[String], last_joint: &str) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{}{last_joint}{last}", first.join(", ")),
    }
}

/// "0–35", "0–3, 8", from ascending numbers.
pub(crate) fn ranges(numbers: &[u64]) -> String {
    runs(numbers, ", ", Look::PLAIN)
}

/// The shortest form of a parameter: `0.5`, `2`, `1e-46`.
pub(crate) fn parameter(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// Text from a file, on one line and cut after 80 characters.
pub(crate) fn excerpt(text: &str) -> String {
    let printable = |sign: char| if sign.is_control() { char::REPLACEMENT_CHARACTER } else { sign };
    let mut excerpt: String = text.chars().take(MAX_EXCERPT).map(printable).collect();
    if text.chars().nth(MAX_EXCERPT).is_some() {
        excerpt.push_str("...");
    }
    excerpt
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

    #[test]
    fn choices_are_joined_by_or() {
        assert_eq!(list_or([]), "");
        assert_eq!(list_or(["a"]), "`a`");
        assert_eq!(list_or(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(list_and(["a", "b"]), "`a` and `b`");
    }

    #[test]
    fn counts_have_a_plural() {
        assert_eq!(count(1_u64, "tensor"), "1 tensor");
        assert_eq!(count(0_usize, "key"), "0 keys");
    }

    #[test]
    fn excerpts_are_one_short_line() {
        assert_eq!(excerpt("a\nb"), "a\u{fffd}b");
        assert_eq!(excerpt(&"x".repeat(81)), "x".repeat(80) + "...");
    }
}
