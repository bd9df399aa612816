//! Alternatives in braces that no key takes: `{0..35}` on a model of four layers, `{q,x}_proj`.

use super::draft::{Context, Draft};
use super::say;
use super::scope::literal_ends;
use crate::checkpoint::TensorIndex;
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::{Operation, Pattern};

/// So many keys are looked at for one operation, at most: what is not known to be dead is taken to be alive.
const LOOKED_AT: usize = 1 << 20;

/// Advises of alternatives that match nothing, of a pattern that matches something.
pub(super) fn remark(context: &Context<'_>, operation: &Operation, draft: &mut Draft) {
    let pattern = &operation.pattern.value;
    let mut left = LOOKED_AT;
    for group in pattern.groups() {
        let dead: Vec<&str> = group
            .alternatives
            .iter()
            .filter(|alternative| {
                let narrowed = pattern.narrowed(group, alternative);
                narrowed.is_some_and(|narrowed| !any(context.index(), &narrowed, &mut left))
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

/// Whether any key matches, or there is no more leave to look.
fn any(index: &TensorIndex, pattern: &Pattern, left: &mut usize) -> bool {
    let (head, tail) = literal_ends(pattern.as_str());
    for (key, _) in &index.entries()[index.with_prefix(head)] {
        if *left == 0 || (key.as_str().ends_with(tail) && pattern.matches(key.as_str())) {
            return true;
        }
        *left -= 1;
    }
    false
}
