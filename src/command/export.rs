//! `mlxcel surgery export`.

use std::path::Path;

use serde_json::json;

use super::bar::Bar;
use super::report::{Answer, DENIED};
use super::{Exit, Outcome, interrupt, output};
use crate::cli::{Deny, ExportArgs, PlanFormat};
use crate::diagnostic::{self, Diagnostic, Severity, bytes, render};
use crate::execute::{self, ExportError, Exported};
use crate::plan::Plan;
use crate::plan::render::json::FORMAT_VERSION;
use crate::surgery::SurgeryFile;

pub(super) fn run(args: &ExportArgs) -> Outcome {
    interrupt::listen()?;
    interrupt::hold();
    let file = SurgeryFile::read(&args.file);
    let answer = Answer::planned(&file, &args.model);
    let mut diagnostics = answer.diagnostics().to_vec();
    let mut code = Exit::failed_if(answer.fails(args.deny));
    let mut denied = answer.denied(args.deny);
    let mut done = None;
    if let (Some(plan), false) = (&answer.plan, answer.fails(args.deny)) {
        match export(plan, args) {
            Ok((exported, published)) => {
                diagnostics.extend(exported.report.diagnostics.iter().cloned());
                if !published {
                    code = Exit::Failed;
                    denied = true;
                }
                done = Some(Done { plan, exported, published });
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
    let written = done.as_ref().filter(|done| done.published);
    match args.format() {
        PlanFormat::Json => {
            let object = json!({
                "format_version": FORMAT_VERSION,
                "file": args.file.to_string_lossy(),
                "model": args.model.to_string_lossy(),
                "output": written.map(|_| args.output.to_string_lossy()),
                "digest": written.and_then(|done| done.plan.digest()),
                "tensors": written.map(|done| done.exported.tensors),
                "bytes": written.map(|done| done.exported.bytes),
                "report": done.as_ref().map(|done| &done.exported.report),
                "diagnostics": diagnostic::json(&diagnostics, Some(&file.source)),
            });
            output::stdout(&format!("{object:#}\n")).map_err(|error| match written {
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
            let mut lines = done.as_ref().map(|done| done.said(&args.output)).unwrap_or_default();
            if denied {
                lines.push(format!("nothing was written: {DENIED}"));
            }
            for line in lines {
                output::stderr(&format!("{line}\n"));
            }
        }
    }
    Ok(code)
}

/// A plan that was carried out.
struct Done<'p> {
    plan: &'p Plan,
    exported: Exported,
    /// Whether the checkpoint is there. It is not if the report has warnings and they are denied.
    published: bool,
}

impl Done<'_> {
    /// What was done to the weights, and what was written.
    fn said(&self, path: &Path) -> Vec<String> {
        let Self { plan, exported, published } = self;
        let mut lines = exported.report.lines();
        lines.extend(exported.cleared.iter().map(|path| cleared(path)));
        if !published {
            return lines;
        }
        let plural = if exported.tensors == 1 { "" } else { "s" };
        let path = shown(path);
        let size = bytes(exported.bytes);
        let written = format!("wrote `{path}`: {size}, {} tensor{plural}", exported.tensors);
        lines.push(match plan.digest() {
            Some(digest) => format!("{written}, digest {digest}"),
            None => format!("{written}, the model as it was: the surgery file changes nothing"),
        });
        lines
    }
}

/// What is said of a leftover that was removed.
pub(super) fn cleared(path: &Path) -> String {
    format!("removed `{}`, which a run that was killed left", shown(path))
}

/// A path without control characters, which a terminal takes as orders.
fn shown(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "\u{fffd}")
}

/// What was done, and whether it was written.
fn export(plan: &Plan, args: &ExportArgs) -> Result<(Exported, bool), ExportError> {
    let mut bar = Bar::bytes("exporting");
    let progress = &mut |done, total| bar.set(done, total);
    let export = execute::write(plan, &args.output, progress, interrupt::stop())?;
    // Only the report says what rounding did, so that it is asked before anything has its name.
    match args.deny {
        Some(Deny::Warnings) if !export.exported().report.diagnostics.is_empty() => {
            Ok((export.discard(), false))
        }
        _ => Ok((export.publish()?, true)),
    }
}
