//! Parts of patterns that have no effect or another one than they seem to: alternatives in braces that match no key
//! (`{0..35}` on a model of four layers, `{q,x}_proj`), excludes that exclude nothing, sets of characters that look like
//! ranges of numbers (`[10-15]`).

use crate::checkpoint::{Key, TensorIndex};
use crate::diagnostic::{Code, Diagnostic, Span, words};
use crate::plan::scope::Scope;
use crate::plan::suggest::{self, KeyNames};
use crate::surgery::{Matcher, Operation, Pattern, SurgeryFile};

/// Maximum number of keys that are scanned for all operations together, each its share. An alternative that is not known
/// to be dead counts as alive.
const MAX_KEYS_SCANNED: usize = 1 << 23;
/// Keys that could be scanned in the time that narrowing a pattern takes.
const NARROWING_COST: usize = 32;

/// Notes on what has no effect in a pattern that matches something, and in its excludes.
pub(super) fn notes(
    file: &SurgeryFile,
    names: &KeyNames<'_>,
    operation: &Operation,
    scope: &Scope,
) -> Vec<Diagnostic> {
    let mut notes = alternatives(file, names, operation, scope);
    for &place in &scope.idle {
        let Some(exclude) = operation.exclude.get(place) else { continue };
        let message = format!("`exclude` `{}` excludes nothing", exclude.value.as_str());
        let help = if names.any(&exclude.value) {
            "correct or remove it: it matches keys, but none that `pattern` matches".to_owned()
        } else {
            suggest::help(names, exclude.value.as_str())
        };
        notes.push(exclude.label_at_use(Diagnostic::new(Code::DeadAlternative, message).help(help), ""));
    }
    for pattern in std::iter::once(&operation.pattern).chain(&operation.exclude) {
        for (span, low, high) in sets(pattern.value.as_str()) {
            let written = pattern.value.as_str().get(span.clone()).unwrap_or_default();
            let message = format!("`{written}` matches one character of a set, not a range of numbers");
            let help = format!("write `{{{low}..{high}}}` for a range of numbers");
            let place = pattern.part(&span, &file.source.text);
            notes.push(place.label_at_use(Diagnostic::new(Code::DeadAlternative, message).help(help), ""));
        }
    }
    notes
}

/// The sets of a pattern that look like a range of numbers, with its ends: `[0..3]`, `[10-15]`, not `[0-3]`.
fn sets(pattern: &str) -> Vec<(Span, &str, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = pattern.get(at..).and_then(|rest| rest.find(['[', '\\'])).map(|open| at + open) {
        let inside = &pattern[open + 1..];
        if pattern[open..].starts_with('\\') {
            at = open + 1 + inside.chars().next().map_or(0, char::len_utf8);
            continue;
        }
        let Some(close) = inside.find(']') else { break };
        let body = &inside[..close];
        at = open + 1 + close + 1;
        if let Some((low, high)) = suggest::range(body)
            && !(low.len() == 1 && high.len() == 1 && body.len() == 3)
        {
            found.push((open..at, low, high));
        }
    }
    found
}

/// Notes on alternatives that match nothing.
fn alternatives(
    file: &SurgeryFile,
    names: &KeyNames<'_>,
    operation: &Operation,
    scope: &Scope,
) -> Vec<Diagnostic> {
    let mut notes = Vec::new();
    let pattern = &operation.pattern.value;
    let mut left = MAX_KEYS_SCANNED / file.operations.len().max(1);
    for group in pattern.groups() {
        let dead: Vec<&str> = group
            .alternatives
            .iter()
            .filter(|alternative| {
                left = left.saturating_sub(NARROWING_COST);
                let narrowed = if left > 0 { pattern.narrowed(&group, alternative) } else { None };
                narrowed.is_some_and(|narrowed| !any(names.index(), scope, &narrowed, &mut left))
            })
            .map(String::as_str)
            .collect();
        if dead.is_empty() {
            continue;
        }
        let written = pattern.as_str().get(group.span.clone()).unwrap_or_default();
        let one = dead.len() == 1;
        let message = format!(
            "{} of `{written}` {} nothing: {}",
            words::count(dead.len(), "alternative"),
            if one { "matches" } else { "match" },
            listed(&dead),
        );
        let help = format!("correct or remove {}", if one { "it" } else { "them" });
        let place = operation.pattern.part(&group.span, &file.source.text);
        notes.push(place.label_at_use(Diagnostic::new(Code::DeadAlternative, message).help(help), ""));
    }
    notes
}

/// Numbers as ranges, texts in backticks.
fn listed(dead: &[&str]) -> String {
    let mut numbers: Vec<u64> = dead.iter().filter_map(|text| text.parse().ok()).collect();
    if numbers.len() == dead.len() {
        numbers.sort_unstable();
        numbers.dedup();
        return words::ranges(&numbers);
    }
    let texts: Vec<String> = dead.iter().take(words::MAX_NAMES).map(|text| format!("`{text}`")).collect();
    words::list(&texts, dead.len() - texts.len())
}

/// Whether any key matches, or no scans are left. Whatever a part of the pattern matches is among what the whole matches,
/// which is known unless an `exclude` removed something.
fn any(index: &TensorIndex, scope: &Scope, pattern: &Pattern, left: &mut usize) -> bool {
    let matcher = Matcher::new(pattern);
    let mut found = |key: &Key| {
        let may = left.checked_sub(1);
        *left = may.unwrap_or_default();
        may.is_none() || matcher.matches(key.as_str())
    };
    let entries = index.entries();
    scope.matched.iter().any(|&id| found(&index[id].0))
        || (scope.excluded > 0
            && entries[index.with_prefix(matcher.head())].iter().any(|(key, _)| found(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, found: &[(&str, &str)]) {
        let sets: Vec<_> = sets(pattern).into_iter().map(|(_, low, high)| (low, high)).collect();
        assert_eq!(sets, found);
    }

    #[test]
    fn sets_that_look_like_ranges_of_numbers_are_found() {
        check("a.[10-15].b.[0..3]", &[("10", "15"), ("0", "3")]);
        check("[0-12]", &[("0", "12")]);
        check("[0–3]", &[("0", "3")]);
        check(r"[0-3].[13].[!a-z].\[10-15].[", &[]);
    }
}
