//! Alternatives in braces that no key takes: `{0..35}` on a model of four layers, `{q,x}_proj`.

use super::draft::{Context, Draft};
use super::say;
use super::scope::Scope;
use crate::checkpoint::{Key, TensorIndex};
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::{Matcher, Operation, Pattern};

/// So many keys are looked at for all operations together, each its share: what is not known to be dead is taken to be
/// alive.
const LOOKED_AT: usize = 1 << 23;
/// To narrow a pattern costs as much as looking at so many keys.
const NARROWED: usize = 32;

/// Advises of alternatives that match nothing, of a pattern that matches something.
pub(super) fn remark(context: &Context<'_>, operation: &Operation, scope: &Scope, draft: &mut Draft) {
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
            say::count(dead.len(), "alternative"),
            if one { "matches" } else { "match" },
            names(&dead),
        );
        let help = format!("the others match something; drop or correct {}", if one { "it" } else { "them" });
        let place = operation.pattern.part(&group.span, &context.file.source.text);
        draft.say(place.mark(Diagnostic::new(Code::DeadAlternative, message).help(help), ""));
    }
}

/// Numbers as ranges, texts in backticks.
fn names(dead: &[&str]) -> String {
    let mut numbers: Vec<u64> = dead.iter().filter_map(|text| text.parse().ok()).collect();
    if numbers.len() == dead.len() {
        numbers.sort_unstable();
        numbers.dedup();
        return say::ranges(&numbers);
    }
    let texts: Vec<String> = dead.iter().take(say::SHOWN).map(|text| format!("`{text}`")).collect();
    say::list(&texts, dead.len() - texts.len())
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
