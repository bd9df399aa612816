//! `mlxcel surgery diff`: the tensors of two checkpoints that differ, or that a surgery file changes, and by how much.

mod text;

use std::path::Path;

use serde_json::json;

use super::bar::Bar;
use super::exit::Exit;
use super::failure::Outcome;
use super::output;
use super::planned::Planned;
use crate::checkpoint::{Checkpoint, Weights, not_above_models};
use crate::cli::{DiffArgs, OutputFormat};
use crate::diagnostic::{self, Code, Diagnostic, Severity, Source, render};
use crate::execute::{Comparison, Verdict, diff, diff_plan};
use crate::plan::{self, FORMAT_VERSION};
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
        OutputFormat::Json => {
            output::stdout(&format!("{:#}\n", as_json(args, &found, &diagnostics, source)))?;
        }
        OutputFormat::Text => {
            diagnostics.retain(|one| one.severity() == Severity::Error);
            output::stderr(&render(&diagnostics, source, output::stderr_look()));
            if !failed {
                let look = output::look();
                output::stdout(&(sides(args) + &text::of(&found, look, args.all)))?;
            }
        }
    }
    Ok(Exit::failed_if(failed))
}

/// The comparison of each tensor, or the errors that prevent it.
type Compared = Result<Vec<Comparison>, Vec<Diagnostic>>;

fn two(first: &Path, second: &Path) -> Compared {
    // With its configuration a tied head is recognized.
    let open = |path| match Checkpoint::open(path) {
        Ok(checkpoint) => Ok(checkpoint.weights),
        Err(_) => Weights::open(path)
            .and_then(|weights| not_above_models(path).map(|()| weights).map_err(|error| vec![error]))
            .map_err(|errors| plan::base_refusals(&errors)),
    };
    let (first, second) = (open(first)?, open(second)?);
    gather(&first, |each| diff(&first, &second, each))
}

/// Refuses a YAML file in place of weights.
fn surgery_file(args: &DiffArgs) -> Option<Diagnostic> {
    let is_yaml = |path: &&Path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let path = [Some(args.first.as_path()), args.second.as_deref()].into_iter().flatten().find(is_yaml)?;
    let name = path.display();
    let message = format!("`{name}` is a YAML file, not a checkpoint");
    let help = format!("run `mlxcel surgery diff DIR --surgery {name}` to see what it changes");
    Some(Diagnostic::new(Code::ModelUnreadable, message).help(help))
}

/// The heading: what is compared with what.
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
    let planned = Planned::on(file, model);
    let diagnostics = planned.diagnostics().to_vec();
    let compared = match &planned.plan {
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
