//! `mlxcel surgery diff`: which tensors of two checkpoints differ, or which a surgery file changes, and by how much.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use super::bar::Bar;
use super::report::Answer;
use super::{Outcome, output};
use crate::checkpoint::Weights;
use crate::cli::{DiffArgs, PlanFormat};
use crate::diagnostic::{self, Diagnostic, Look, Severity, Source, render, rows};
use crate::execute::{Comparison, Figures, Verdict, diff, diff_plan};
use crate::plan::fold::fold;
use crate::plan::json::FORMAT_VERSION;
use crate::plan::{self};
use crate::surgery::SurgeryFile;

pub(super) fn run(args: &DiffArgs) -> Outcome {
    let file = args.surgery.as_deref().map(SurgeryFile::read);
    let (result, mut diagnostics) = match (&file, &args.second) {
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
                output::stdout(&as_text(&found, output::look(), args.all))?;
            }
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// All comparisons, or why there are none.
type Compared = Result<Vec<Comparison>, Vec<Diagnostic>>;

fn two(first: &Path, second: &Path) -> Compared {
    let open = |path| Weights::open(path).map_err(|errors| plan::base_refusals(&errors));
    let (first, second) = (open(first)?, open(second)?);
    gather(first.index.entries().len(), |each| diff(&first, &second, each))
}

fn with_surgery(model: &Path, file: &SurgeryFile) -> (Compared, Vec<Diagnostic>) {
    let answer = Answer::planned(file, model);
    let diagnostics = answer.diagnostics().to_vec();
    let compared = match &answer.plan {
        Some(plan) => gather(plan.base().weights.index.entries().len(), |each| diff_plan(plan, each)),
        None => Ok(Vec::new()),
    };
    (compared, diagnostics)
}

fn gather(
    tensors: usize,
    compare: impl FnOnce(&mut dyn FnMut(Comparison)) -> Result<(), crate::execute::ExecuteError>,
) -> Compared {
    let mut bar = Bar::tensors("comparing");
    let mut found = Vec::new();
    let each = &mut |comparison| {
        found.push(comparison);
        bar.set(found.len() as u64, tensors as u64);
    };
    compare(each).map_err(|error| vec![Diagnostic::from(&error)])?;
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
    let (differ, equal) = (different.len(), found.len() - different.len());
    text + &format!("  {differ} of {} tensors differ, {equal} are equal\n", found.len())
}

/// Tensors whose names differ in numbers only and of which the same kind of thing is to be said, in order.
fn grouped<'c>(different: &[&'c Comparison]) -> Vec<Vec<&'c Comparison>> {
    let mut places = HashMap::new();
    let mut groups: Vec<Vec<&Comparison>> = Vec::new();
    for one in different {
        let name = one.key.as_str().split('.').map(|part| part.parse::<u64>().map_or(part, |_| "#"));
        let group = (name.collect::<Vec<_>>(), std::mem::discriminant(&one.verdict));
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
        Some(Verdict::Incomparable) => "another shape or dtype".to_owned(),
        Some(Verdict::OnlyFirst) => "only in the first".to_owned(),
        Some(Verdict::OnlySecond) => "only in the second".to_owned(),
        Some(Verdict::Equal) | None => String::new(),
    };
    count + &what
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
    if let Some((low, high)) = range(|one| one.relative.map(|ratio| ratio * 100.0)) {
        let (low, high) = (number(low), number(high));
        parts.push(if low == high { format!("change {low} %") } else { format!("change {low} to {high} %") });
    }
    if let Some((cosine, _)) = range(|one| one.cosine) {
        parts.push(format!("cosine {cosine:.6}"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Key;

    fn differs(key: &str, max: f64, relative: f64) -> Comparison {
        let figures = Figures {
            elements: 4,
            different: 2,
            max: Some(max),
            relative: Some(relative),
            cosine: Some(0.5),
        };
        Comparison { key: Key::from(key), shape: vec![4], verdict: Verdict::Differs(figures) }
    }

    #[test]
    fn layers_are_folded_and_figures_span_them() {
        let equal = Comparison { key: Key::from("z"), shape: vec![], verdict: Verdict::Equal };
        let head =
            Comparison { key: Key::from("lm_head.weight"), shape: vec![], verdict: Verdict::OnlySecond };
        let found = [head, differs("layers.0.w", 0.25, 0.01), differs("layers.1.w", 0.5, 0.025), equal];
        let text = as_text(&found, Look::PLAIN, false);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(lines[0].starts_with("lm_head.weight") && lines[0].ends_with("only in the second"), "{text}");
        assert!(lines[1].ends_with("2 tensors, max 0.5, change 1 to 2.5 %, cosine 0.500000"), "{text}");
        assert_eq!(lines.last(), Some(&"3 of 4 tensors differ, 1 are equal"));
        assert_eq!(as_text(&found, Look::PLAIN, true).lines().count(), 5);
    }

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in
            [(0.0, "0"), (5.0, "5"), (0.012_345, "0.0123"), (1234.5, "1234"), (1.5e-7, "1.50e-7")]
        {
            assert_eq!(number(value), text);
        }
    }
}
