//! The result of a comparison as a table for people, folded by layer, with the range of each figure.

use std::collections::HashMap;

use crate::diagnostic::fold::fold;
use crate::diagnostic::{Look, rows};
use crate::execute::{Comparison, Figures, NotFinite, Verdict, Which};

const FIGURES: &str =
    "  max: the largest change of an element; change: \u{2016}second - first\u{2016} / \u{2016}first\u{2016}
  a line for several tensors shows the largest max, the range of changes and the smallest cosine\n";

const NOT_FINITE: &str = "  tensors with NaN or infinite elements have no max, change or cosine\n";

const PACKED: &str = "  quantized weights cannot be compared with dense ones; dequantize them first\n";

/// The table of tensors that differ, a legend of its figures, and the totals.
pub(super) fn of(found: &[Comparison], look: Look, all: bool) -> String {
    let different: Vec<&Comparison> = found.iter().filter(|one| one.verdict != Verdict::Equal).collect();
    let mut table = Vec::new();
    for group in if all { different.iter().map(|one| vec![*one]).collect() } else { grouped(&different) } {
        // The names of a group differ only in numbers, but are not always all combinations of these.
        let names = fold(group.iter().map(|one| (one.key.as_str(), ())));
        let names: Vec<String> = names.iter().map(|names| names.name(look)).collect();
        table.push((names.join(", "), details(&group)));
    }
    let mut text = rows(&table, 2, look);
    if !table.is_empty() {
        text.push('\n');
    }
    let figures: Vec<&Figures> = figures(&different).collect();
    let legend = [
        (FIGURES, figures.iter().any(|one| one.max.is_some())),
        (NOT_FINITE, figures.iter().any(|one| one.not_finite.is_some())),
        (PACKED, different.iter().any(|one| is_packed_on_one_side(one))),
    ];
    for (line, needed) in legend {
        text += if needed { line } else { "" };
    }
    if legend.iter().any(|(_, needed)| *needed) {
        text.push('\n');
    }
    let count = |wanted: &[Verdict]| different.iter().filter(|one| wanted.contains(&one.verdict)).count();
    let incomparable = match count(&[Verdict::Incomparable]) {
        0 => None,
        n => Some(format!("{n} in shape or dtype and cannot be compared")),
    };
    let lonely = match count(&[Verdict::OnlyFirst, Verdict::OnlySecond]) {
        0 => None,
        1 => Some("1 exists on one side only".to_owned()),
        n => Some(format!("{n} exist on one side only")),
    };
    let notes: Vec<String> = incomparable.into_iter().chain(lonely).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    let (differ, equal) = (different.len(), found.len() - different.len());
    text + &format!(
        "  {differ} of {} tensors {}{notes}, {equal} {} equal\n",
        found.len(),
        if differ == 1 { "differs" } else { "differ" },
        if equal == 1 { "is" } else { "are" },
    )
}

/// Whether a weight is dense on one side and quantized on the other.
fn is_packed_on_one_side(one: &Comparison) -> bool {
    let dtypes = one.sides().map(|(dtype, _)| dtype);
    one.key.as_str().ends_with(".weight")
        && dtypes.contains(&"U32")
        && dtypes.iter().any(|dtype| matches!(*dtype, "F16" | "BF16" | "F32"))
}

/// Groups tensors whose names differ only in numbers and which have the same kinds of figures, in order. Tensors without
/// change or cosine have groups of their own, because they have no place in a range.
fn grouped<'c>(different: &[&'c Comparison]) -> Vec<Vec<&'c Comparison>> {
    let mut places = HashMap::new();
    let mut groups: Vec<Vec<&Comparison>> = Vec::new();
    for one in different {
        let name = one.key.as_str().split('.').map(|part| part.parse::<u64>().map_or(part, |_| "#"));
        let verdict = std::mem::discriminant(&one.verdict);
        let known = match &one.verdict {
            Verdict::Differs(figures) => {
                let Figures { max, relative, cosine, not_finite, .. } = figures;
                [max.is_some(), relative.is_some(), cosine.is_some(), not_finite.is_some()]
            }
            _ => [false; 4],
        };
        let sides = (one.verdict == Verdict::Incomparable).then(|| one.sides());
        let group = (name.collect::<Vec<_>>(), verdict, known, one.tie.is_some(), &one.dtypes, sides);
        let place = *places.entry(group).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[place].push(one);
    }
    groups
}

/// The figures of the tensors that have any.
fn figures<'c>(of: &[&'c Comparison]) -> impl Iterator<Item = &'c Figures> {
    of.iter().filter_map(|one| match &one.verdict {
        Verdict::Differs(figures) => Some(figures),
        _ => None,
    })
}

/// The second column of a group.
fn details(group: &[&Comparison]) -> String {
    let count = match group.len() {
        1 => String::new(),
        n => format!("{n} tensors, "),
    };
    let figures: Vec<&Figures> = figures(group).collect();
    let what = match group.first().map(|one| one.verdict) {
        Some(Verdict::Differs(_)) => differences(&figures),
        Some(Verdict::Incomparable) => incomparable(group),
        Some(Verdict::OnlyFirst) => "only in the first".to_owned(),
        Some(Verdict::OnlySecond) => "only in the second".to_owned(),
        Some(Verdict::Equal) | None => String::new(),
    };
    let tie = group.first().and_then(|one| one.tie.as_ref()).map(|tie| {
        let side = match tie.side {
            Which::First => "first",
            Which::Second => "second",
        };
        format!(" (tied to `{}` in the {side})", tie.to)
    });
    // If values cannot be compared, dtypes are shown with the shapes.
    let compared = group.first().filter(|one| one.verdict != Verdict::Incomparable);
    let dtypes = compared.and_then(|one| one.dtypes.as_ref());
    let dtypes = dtypes.map(|[first, second]| format!(" ({first} in the first, {second} in the second)"));
    count + &what + &dtypes.unwrap_or_default() + &tie.unwrap_or_default()
}

/// The dtypes and shapes of tensors that have the same.
fn incomparable(group: &[&Comparison]) -> String {
    let sides = group.first().map(|one| one.sides().map(|(dtype, shape)| format!("{dtype} {shape:?}")));
    sides.map(|[first, second]| format!("{first} in the first, {second} in the second")).unwrap_or_default()
}

fn differences(figures: &[&Figures]) -> String {
    let range = |figure: fn(&Figures) -> Option<f64>| {
        let values = figures.iter().filter_map(|one| figure(one));
        values.fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })
    };
    let mut parts = Vec::new();
    if let Some((_, max)) = range(|one| one.max) {
        parts.push(format!("max {}", number(max)));
    }
    if let Some((low, high)) = range(|one| one.relative) {
        let (low, high) = (percent(low), percent(high));
        parts.push(if low == high { format!("change {low} %") } else { format!("change {low} to {high} %") });
    }
    if let Some((cosine, _)) = range(|one| one.cosine) {
        parts.push(format!("cosine {cosine:.6}"));
    }
    // A change from zero has no ratio, and nothing has an angle with zero.
    if figures.iter().all(|one| one.elements > 0 && one.max.is_some()) {
        match figures.first() {
            Some(Figures { relative: None, .. }) => parts.push("from zero".to_owned()),
            Some(Figures { cosine: None, .. }) => parts.push("to zero".to_owned()),
            _ => {}
        }
    }
    if parts.is_empty() {
        let (different, elements) =
            figures.iter().fold((0, 0), |(d, e), one| (d + one.different, e + one.elements));
        parts.push(format!("{different} of {elements} elements"));
    }
    let mut counts = NotFinite::default();
    figures.iter().filter_map(|one| one.not_finite).for_each(|one| counts.add(&one));
    parts.extend(not_finite(&counts));
    parts.join(", ")
}

/// The numbers of elements that are not finite, and the sides they are on.
fn not_finite(counts: &NotFinite) -> impl Iterator<Item = String> {
    let NotFinite { nan, infinite, only } = *counts;
    let kind = |sides: &[usize]| {
        let sum = |counts: [u64; 2]| sides.iter().map(|&side| counts[side]).sum::<u64>();
        match (sum(nan), sum(infinite)) {
            (_, 0) => "NaN",
            (0, _) => "infinite",
            _ => "NaN or infinite",
        }
    };
    let both = nan[0] + infinite[0] - only[0];
    [
        (only[0], kind(&[0]), "in the first only"),
        (only[1], kind(&[1]), "in the second only"),
        (both, kind(&[0, 1]), "in both"),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, kind, place)| format!("{count} {kind} {place}"))
}

/// Three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        1e-4..1e5 => {
            let digits = (2.0 - value.abs().log10().floor()).clamp(0.0, 7.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 7")]
            let text = format!("{value:.*}", digits as usize);
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            }
        }
        _ => format!("{value:.2e}"),
    }
}

/// The number before a percent sign, never with an exponent.
fn percent(ratio: f64) -> String {
    match ratio * 100.0 {
        tiny if tiny > 0.0 && tiny < 1e-4 => "<0.0001".to_owned(),
        huge if huge > 1e6 => ">1000000".to_owned(),
        large if large >= 1e5 => format!("{large:.0}"),
        value => number(value),
    }
}

#[cfg(test)]
mod tests;
