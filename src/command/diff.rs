//! `mlxcel surgery diff`: which tensors of two checkpoints differ, or which a surgery file changes, and by how much.

use std::collections::HashMap;
use std::path::Path;

use serde_json::json;

use super::bar::Bar;
use super::report::Answer;
use super::{Exit, Outcome, output};
use crate::checkpoint::{Checkpoint, Weights};
use crate::cli::{DiffArgs, PlanFormat};
use crate::diagnostic::{self, Code, Diagnostic, Look, Severity, Source, render, rows};
use crate::execute::{Comparison, Figures, Verdict, Which, diff, diff_plan};
use crate::plan::fold::fold;
use crate::plan::json::FORMAT_VERSION;
use crate::plan::{self};
use crate::surgery::SurgeryFile;

pub(super) fn run(args: &DiffArgs) -> Outcome {
    let file = args.surgery.as_deref().map(SurgeryFile::read);
    let (result, mut diagnostics) = match (&file, &args.second) {
        _ if surgery_file(args).is_some() => (Err(surgery_file(args).into_iter().collect()), Vec::new()),
        (Some(file), _) => with_surgery(&args.first, file),
        (None, Some(second)) => (two(&args.first, second), Vec::new()),
        (None, None) => (Ok(Vec::new()), Vec::new()),
    };
    let found = result.unwrap_or_else(|errors| {
        diagnostics.extend(errors);
        Vec::new()
    });
    let failed = diagnostics.iter().any(|one| one.severity() == Severity::Error);
    let source = file.as_ref().map(|file| &file.source);
    match args.format() {
        PlanFormat::Json => output::stdout(&format!("{:#}\n", as_json(args, &found, &diagnostics, source)))?,
        PlanFormat::Text => {
            diagnostics.retain(|one| one.severity() == Severity::Error);
            output::stderr(&render(&diagnostics, source, output::stderr_look()));
            if !failed {
                let look = output::look();
                output::stdout(&(sides(args) + &as_text(&found, look, args.all)))?;
            }
        }
    }
    Ok(Exit::failed_if(failed))
}

/// All comparisons, or why there are none.
type Compared = Result<Vec<Comparison>, Vec<Diagnostic>>;

fn two(first: &Path, second: &Path) -> Compared {
    // With a config beside it, a tied head is known to be one.
    let open = |path| match Checkpoint::open(path) {
        Ok(checkpoint) => Ok(checkpoint.weights),
        Err(_) => Weights::open(path).map_err(|errors| plan::base_refusals(&errors)),
    };
    let (first, second) = (open(first)?, open(second)?);
    gather(&first, |each| diff(&first, &second, each))
}

/// A surgery file where weights should be.
fn surgery_file(args: &DiffArgs) -> Option<Diagnostic> {
    let is_yaml = |path: &&Path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let path = [Some(args.first.as_path()), args.second.as_deref()].into_iter().flatten().find(is_yaml)?;
    let name = path.display();
    let message = format!("`{name}` is a YAML file, not a checkpoint");
    let help = format!("to see what it would change: `mlxcel surgery diff DIR --surgery {name}`");
    Some(Diagnostic::new(Code::ModelUnreadable, message).help(help))
}

/// What is compared with what.
fn sides(args: &DiffArgs) -> String {
    let first = args.first.display();
    let second = match (&args.second, &args.surgery) {
        (Some(second), _) => second.display().to_string(),
        (None, Some(file)) => format!("{first} after {}", file.display()),
        (None, None) => String::new(),
    };
    format!("  first   {first}\n  second  {second}\n\n")
}

fn with_surgery(model: &Path, file: &SurgeryFile) -> (Compared, Vec<Diagnostic>) {
    let answer = Answer::planned(file, model);
    let diagnostics = answer.diagnostics().to_vec();
    let compared = match &answer.plan {
        Some(plan) => gather(&plan.base().weights, |each| diff_plan(plan, each)),
        None => Ok(Vec::new()),
    };
    (compared, diagnostics)
}

fn gather(
    first: &Weights,
    compare: impl FnOnce(&mut dyn FnMut(Comparison)) -> Result<(), crate::execute::ExecuteError>,
) -> Compared {
    let entries = first.index.entries().iter().map(|(_, info)| first.locate(info).1);
    let total = entries.map(|range| range.end - range.start).sum();
    let (mut bar, mut done) = (Bar::bytes("comparing"), 0);
    let mut found = Vec::new();
    let each = &mut |comparison: Comparison| {
        done += comparison.bytes;
        bar.set(done.min(total), total);
        found.push(comparison);
    };
    compare(each).map_err(|error| vec![Diagnostic::from(&error)])?;
    bar.set(total, total);
    Ok(found)
}

fn as_json(
    args: &DiffArgs,
    found: &[Comparison],
    diagnostics: &[Diagnostic],
    source: Option<&Source>,
) -> serde_json::Value {
    let count = |wanted: fn(&Verdict) -> bool| found.iter().filter(|one| wanted(&one.verdict)).count();
    json!({
        "format_version": FORMAT_VERSION,
        "first": args.first.to_string_lossy(),
        "second": args.second.as_deref().map(Path::to_string_lossy),
        "surgery": args.surgery.as_deref().map(Path::to_string_lossy),
        "tensors": found.iter().filter(|one| one.verdict != Verdict::Equal).collect::<Vec<_>>(),
        "summary": {
            "equal": count(|verdict| *verdict == Verdict::Equal),
            "differs": count(|verdict| matches!(verdict, Verdict::Differs(_))),
            "incomparable": count(|verdict| *verdict == Verdict::Incomparable),
            "only_first": count(|verdict| *verdict == Verdict::OnlyFirst),
            "only_second": count(|verdict| *verdict == Verdict::OnlySecond),
        },
        "diagnostics": diagnostic::json(diagnostics, source),
    })
}

const LEGEND: &str =
    "  max: the largest change of an element; change: \u{2016}second - first\u{2016} / \u{2016}first\u{2016}
  of several tensors in a line: the largest max, the range of changes, the smallest cosine\n\n";

fn as_text(found: &[Comparison], look: Look, all: bool) -> String {
    let different: Vec<&Comparison> = found.iter().filter(|one| one.verdict != Verdict::Equal).collect();
    let mut table = Vec::new();
    for group in if all { different.iter().map(|one| vec![*one]).collect() } else { grouped(&different) } {
        // Names of a group differ in numbers only, but need not be every combination of them.
        let names = fold(group.iter().map(|one| (one.key.as_str(), ())));
        let names: Vec<String> = names.iter().map(|names| names.name(look)).collect();
        table.push((names.join(", "), says(&group)));
    }
    let mut text = rows(&table, 2, look);
    if !table.is_empty() {
        text.push('\n');
    }
    if different.iter().any(|one| matches!(one.verdict, Verdict::Differs(_))) {
        text += LEGEND;
    }
    let count = |wanted: &[Verdict]| different.iter().filter(|one| wanted.contains(&one.verdict)).count();
    let incomparable = match count(&[Verdict::Incomparable]) {
        0 => None,
        n => Some(format!("{n} in shape or dtype, so that values cannot be compared")),
    };
    let lonely = match count(&[Verdict::OnlyFirst, Verdict::OnlySecond]) {
        0 => None,
        1 => Some("1 is in one of the two only".to_owned()),
        n => Some(format!("{n} are in one of the two only")),
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

/// Tensors whose names differ in numbers only and of which the same kind of thing is to be said, in order. What has no
/// change or no cosine stays by itself: it has no place in a range.
fn grouped<'c>(different: &[&'c Comparison]) -> Vec<Vec<&'c Comparison>> {
    let mut places = HashMap::new();
    let mut groups: Vec<Vec<&Comparison>> = Vec::new();
    for one in different {
        let name = one.key.as_str().split('.').map(|part| part.parse::<u64>().map_or(part, |_| "#"));
        let verdict = std::mem::discriminant(&one.verdict);
        let known = match &one.verdict {
            Verdict::Differs(figures) => {
                [figures.max, figures.relative, figures.cosine].map(|one| one.is_some())
            }
            _ => [false; 3],
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

/// What is to be said of a group.
fn says(group: &[&Comparison]) -> String {
    let count = match group.len() {
        1 => String::new(),
        n => format!("{n} tensors, "),
    };
    let figures: Vec<&Figures> = group
        .iter()
        .filter_map(|one| match &one.verdict {
            Verdict::Differs(figures) => Some(figures),
            _ => None,
        })
        .collect();
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
    // Where values cannot be compared, they are told with the shapes.
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
    // Whatever changes from zero, the change has no share; nothing has an angle with zero.
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
    parts.join(", ")
}

/// Three digits, however large or small.
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

/// The figure before a percent sign: never with an exponent, which nobody reads as a share.
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
