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
        text += "  max: the largest change of an element; change: \u{2016}second - first\u{2016} / \u{2016}first\u{2016}\n\n";
    }
    let count = |wanted: &[Verdict]| different.iter().filter(|one| wanted.contains(&one.verdict)).count();
    let incomparable = match count(&[Verdict::Incomparable]) {
        0 => String::new(),
        n => format!(" ({n} in shape or dtype, so that values cannot be compared)"),
    };
    let lonely = match count(&[Verdict::OnlyFirst, Verdict::OnlySecond]) {
        0 => String::new(),
        1 => " (1 is in one of the two only)".to_owned(),
        n => format!(" ({n} are in one of the two only)"),
    };
    let (differ, equal) = (different.len(), found.len() - different.len());
    text + &format!(
        "  {differ} of {} tensors {}{incomparable}{lonely}, {equal} {} equal\n",
        found.len(),
        if differ == 1 { "differs" } else { "differ" },
        if equal == 1 { "is" } else { "are" },
    )
}

/// Tensors whose names differ in numbers only and of which the same kind of thing is to be said, in order.
fn grouped<'c>(different: &[&'c Comparison]) -> Vec<Vec<&'c Comparison>> {
    let mut places = HashMap::new();
    let mut groups: Vec<Vec<&Comparison>> = Vec::new();
    for one in different {
        let name = one.key.as_str().split('.').map(|part| part.parse::<u64>().map_or(part, |_| "#"));
        let verdict = std::mem::discriminant(&one.verdict);
        let group = (name.collect::<Vec<_>>(), verdict, one.tie.is_some(), &one.dtypes);
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
    let tie = group.first().and_then(|one| one.tie.as_ref()).map(|tie| {
        let side = match tie.side {
            Which::First => "first",
            Which::Second => "second",
        };
        format!(" (tied to `{}` in the {side})", tie.to)
    });
    let dtypes = group.first().and_then(|one| one.dtypes.as_ref());
    let dtypes = dtypes.map(|[first, second]| format!(" ({first} in the first, {second} in the second)"));
    count + &what + &dtypes.unwrap_or_default() + &tie.unwrap_or_default()
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
mod tests {
    use super::*;
    use crate::checkpoint::Key;

    #[test]
    fn two_dtypes_are_told() {
        let one = Comparison { dtypes: Some(["F32".into(), "F16".into()]), ..differs("x", 0.0, 0.0) };
        assert!(says(&[&one]).ends_with("(F32 in the first, F16 in the second)"), "{}", says(&[&one]));
    }

    #[test]
    fn shares_are_written_without_exponents() {
        for (ratio, text) in [
            (0.0, "0"),
            (1e-9, "<0.0001"),
            (0.000_012, "0.0012"),
            (0.5, "50"),
            (3_000.0, "300000"),
            (1e30, ">1000000"),
            (f64::INFINITY, ">1000000"),
        ] {
            assert_eq!(percent(ratio), text);
        }
    }

    fn differs(key: &str, max: f64, relative: f64) -> Comparison {
        let figures = Figures {
            elements: 4,
            different: 2,
            max: Some(max),
            relative: Some(relative),
            cosine: Some(0.5),
        };
        Comparison { verdict: Verdict::Differs(figures), ..equal(key) }
    }

    fn equal(key: &str) -> Comparison {
        Comparison {
            key: Key::from(key),
            shape: vec![4],
            bytes: 8,
            dtypes: None,
            tie: None,
            verdict: Verdict::Equal,
        }
    }

    #[test]
    fn layers_are_folded_and_figures_span_them() {
        let head = Comparison { verdict: Verdict::OnlySecond, ..equal("lm_head.weight") };
        let found = [head, differs("layers.0.w", 0.25, 0.01), differs("layers.1.w", 0.5, 0.025), equal("z")];
        let text = as_text(&found, Look::PLAIN, false);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(lines[0].starts_with("lm_head.weight") && lines[0].ends_with("only in the second"), "{text}");
        assert!(lines[1].ends_with("2 tensors, max 0.5, change 1 to 2.5 %, cosine 0.500000"), "{text}");
        assert_eq!(lines.last(), Some(&"3 of 4 tensors differ (1 is in one of the two only), 1 is equal"));
        assert_eq!(as_text(&found, Look::PLAIN, true).lines().count(), 7);
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
