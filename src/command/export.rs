//! `mlxcel surgery export`.

use std::path::Path;

use serde_json::json;

use super::bar::Bar;
use super::report::Answer;
use super::{Exit, Outcome, interrupt, output};
use crate::cli::{ExportArgs, PlanFormat};
use crate::diagnostic::{self, Diagnostic, Severity, bytes, render};
use crate::execute::{self, ExportError, Exported};
use crate::plan::Plan;
use crate::plan::json::FORMAT_VERSION;
use crate::surgery::SurgeryFile;

pub(super) fn run(args: &ExportArgs) -> Outcome {
    interrupt::listen()?;
    interrupt::hold();
    let file = SurgeryFile::read(&args.file);
    let answer = Answer::planned(&file, &args.model);
    let mut diagnostics = answer.diagnostics().to_vec();
    let mut code = Exit::failed_if(answer.fails(args.deny));
    let mut done = None;
    if let (Some(plan), false) = (&answer.plan, answer.fails(args.deny)) {
        match export(plan, args) {
            Ok(exported) => {
                let report = &exported.report;
                diagnostics.extend(report.diagnostics.iter().cloned());
                if args.deny.is_some() && !report.diagnostics.is_empty() {
                    code = Exit::Failed;
                }
                done = Some((plan, exported));
            }
            Err(error @ ExportError::Interrupted) => {
                output::stderr(&format!("{error}\n"));
                return Ok(Exit::Interrupted);
            }
            Err(error) => {
                code = Exit::Failed;
                diagnostics.push(Diagnostic::from(&error));
            }
        }
    }
    match args.format() {
        PlanFormat::Json => {
            let object = json!({
                "format_version": FORMAT_VERSION,
                "file": args.file.to_string_lossy(),
                "model": args.model.to_string_lossy(),
                "output": done.as_ref().map(|_| args.output.to_string_lossy()),
                "digest": done.as_ref().and_then(|(plan, _)| plan.digest()),
                "tensors": done.as_ref().map(|(_, exported)| exported.tensors),
                "bytes": done.as_ref().map(|(_, exported)| exported.bytes),
                "report": done.as_ref().map(|(_, exported)| &exported.report),
                "diagnostics": diagnostic::json(&diagnostics, Some(&file.source)),
            });
            output::stdout(&format!("{object:#}\n")).map_err(|error| match done {
                Some(_) => error.wrap_err(format!(
                    "the checkpoint `{}` is complete, but what was done cannot be reported",
                    shown(&args.output)
                )),
                None => error,
            })?;
        }
        PlanFormat::Text => {
            // Advice is for plans; what is asked for here is settled.
            diagnostics.retain(|one| one.severity() > Severity::Advice);
            output::stderr(&render(&diagnostics, Some(&file.source), output::stderr_look()));
            if let Some((plan, exported)) = &done {
                for line in said(plan, exported, &args.output) {
                    output::stderr(&format!("{line}\n"));
                }
            }
        }
    }
    Ok(code)
}

/// What was done to the weights, and what was written.
fn said(plan: &Plan, exported: &Exported, path: &Path) -> Vec<String> {
    let mut lines = exported.report.lines();
    lines.extend(exported.cleared.iter().map(|path| cleared(path)));
    let plural = if exported.tensors == 1 { "" } else { "s" };
    let path = shown(path);
    let size = bytes(exported.bytes);
    let written = format!("wrote `{path}`: {size}, {} tensor{plural}", exported.tensors);
    lines.push(match plan.digest() {
        Some(digest) => format!("{written}, {digest}"),
        None => format!("{written}, the model as it was: the surgery file changes nothing"),
    });
    lines
}

/// What is said of a leftover that was removed.
pub(super) fn cleared(path: &Path) -> String {
    format!("removed `{}`, which a run that was killed left", shown(path))
}

/// A path without control characters, which a terminal takes as orders.
fn shown(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "\u{fffd}")
}

fn export(plan: &Plan, args: &ExportArgs) -> Result<Exported, ExportError> {
    let mut bar = Bar::bytes("exporting");
    execute::export(plan, &args.output, &mut |done, total| bar.set(done, total), interrupt::stop())
}
