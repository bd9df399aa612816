//! Wording: lists of keys, shapes, counts and labels, the same in every message of the planner.

use std::fmt::Write as _;

use crate::checkpoint::Dtype;

/// How many names a list spells out before it only counts.
pub(super) const SHOWN: usize = 3;

/// "`a`, `b` and 5 more": the first of so many names.
pub(super) fn names<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{}`", name.as_ref())).collect();
    list(&shown, names.len())
}

/// "a, b and 5 more": the items shown, of so many.
pub(super) fn list(shown: &[String], total: usize) -> String {
    let mut text = String::new();
    for (i, item) in shown.iter().enumerate() {
        let joint = match i {
            0 => "",
            _ if i + 1 == total => " and ",
            _ => ", ",
        };
        let _ = write!(text, "{joint}{item}");
    }
    if total > shown.len() {
        let _ = write!(text, " and {} more", total - shown.len());
    }
    text
}

/// "1 tensor", "3 tensors".
pub(super) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// "BF16 [64, 96]".
pub(super) fn kind(of: Dtype, shape: &[usize]) -> String {
    format!("{of} {shape:?}")
}

/// "0–35", "0–3 and 8", from sorted numbers; "none" from none.
pub(super) fn ranges(numbers: &[u64]) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &n in numbers {
        match runs.last_mut() {
            Some((_, end)) if n == *end + 1 => *end = n,
            Some((_, end)) if n == *end => {}
            _ => runs.push((n, n)),
        }
    }
    let total = runs.len();
    let mut text: Vec<String> = runs
        .into_iter()
        .take(8)
        .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}–{b}") })
        .collect();
    if total > text.len() {
        text.push("…".into());
    }
    if text.is_empty() { "none".into() } else { text.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_spell_out_three_names_and_count_the_rest() {
        assert_eq!(names(&["a"]), "`a`");
        assert_eq!(names(&["a", "b"]), "`a` and `b`");
        assert_eq!(names(&["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(names(&["a", "b", "c", "d", "e"]), "`a`, `b`, `c` and 2 more");
    }

    #[test]
    fn numbers_are_folded_into_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0–2, 5, 7–8");
        assert_eq!(ranges(&[]), "none");
    }
}
