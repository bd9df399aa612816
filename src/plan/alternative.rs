//! Parts of patterns that do nothing or something else than they seem to: alternatives in braces that no key takes
//! (`{0..35}` on a model of four layers, `{q,x}_proj`), excludes that exclude nothing, sets of characters that look like
//! ranges of numbers (`[10-15]`).

use super::draft::{Context, Draft};
use super::scope::Scope;
use super::{near, rewrite};
use crate::checkpoint::{Key, TensorIndex};
use crate::diagnostic::{Code, Diagnostic, Span, words};
use crate::surgery::{Matcher, Operation, Pattern};

/// So many keys are looked at for all operations together, each its share: what is not known to be dead is taken to be
/// alive.
const LOOKED_AT: usize = 1 << 23;
/// To narrow a pattern costs as much as looking at so many keys.
const NARROWED: usize = 32;

/// Advises of what does nothing in a pattern that matches something, and in its excludes.
pub(super) fn remark(context: &Context<'_>, operation: &Operation, scope: &Scope, draft: &mut Draft) {
    dead(context, operation, scope, draft);
    for &place in &scope.idle {
        let Some(exclude) = operation.exclude.get(place) else { continue };
        let message = format!("`exclude` `{}` excludes nothing", exclude.value.as_str());
        let vocabulary = context.vocabulary;
        let help = if vocabulary.any(&exclude.value) {
            "it matches keys, but none that `pattern` matches; drop or correct it".to_owned()
        } else {
            near::help(vocabulary, exclude.value.as_str())
        };
        draft.say(exclude.label_at_use(Diagnostic::new(Code::DeadAlternative, message).help(help), ""));
    }
    for pattern in std::iter::once(&operation.pattern).chain(&operation.exclude) {
        for (span, low, high) in sets(pattern.value.as_str()) {
            let written = pattern.value.as_str().get(span.clone()).unwrap_or_default();
            let message = format!("`{written}` is one character out of a set, not a range of numbers");
            let help = format!("a range of numbers is written `{{{low}..{high}}}`");
            let place = pattern.part(&span, &context.file.source.text);
            draft.say(place.label_at_use(Diagnostic::new(Code::DeadAlternative, message).help(help), ""));
        }
    }
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
        if let Some((low, high)) = rewrite::range(body)
            && !(low.len() == 1 && high.len() == 1 && body.len() == 3)
        {
            found.push((open..at, low, high));
        }
    }
    found
}

/// Advises of alternatives that match nothing.
fn dead(context: &Context<'_>, operation: &Operation, scope: &Scope, draft: &mut Draft) {
    let pattern = &operation.pattern.value;
    let mut left = LOOKED_AT / context.file.operations.len().max(1);
    for group in pattern.groups() {
        let dead: Vec<&str> = group
            .alternatives
            .iter()
            .filter(|alternative| {
                left = left.saturating_sub(NARROWED);
                let narrowed = if left > 0 { pattern.narrowed(&group, alternative) } else { None };
                narrowed.is_some_and(|narrowed| !any(context.index(), scope, &narrowed, &mut left))
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
            names(&dead),
        );
        let help = format!("the others match something; drop or correct {}", if one { "it" } else { "them" });
        let place = operation.pattern.part(&group.span, &context.file.source.text);
        draft.say(place.label_at_use(Diagnostic::new(Code::DeadAlternative, message).help(help), ""));
    }
}

/// Numbers as ranges, texts in backticks.
fn names(dead: &[&str]) -> String {
    let mut numbers: Vec<u64> = dead.iter().filter_map(|text| text.parse().ok()).collect();
    if numbers.len() == dead.len() {
        numbers.sort_unstable();
        numbers.dedup();
        return words::ranges(&numbers);
    }
    let texts: Vec<String> = dead.iter().take(words::MAX_NAMES).map(|text| format!("`{text}`")).collect();
    words::list(&texts, dead.len() - texts.len())
}

/// Whether any key matches, or there is no more leave to look. All that a part of the pattern matches is among what the
/// whole matches, which is known unless an `exclude` took something out.
fn any(index: &TensorIndex, scope: &Scope, pattern: &Pattern, left: &mut usize) -> bool {
    let matcher = Matcher::new(pattern);
    let mut found = |key: &Key| {
        let may = left.checked_sub(1);
        *left = may.unwrap_or_default();
        may.is_none() || matcher.matches(key.as_str())
    };
    let entries = index.entries();
    scope.matched.iter().any(|&position| found(&entries[position].0))
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
