//! `mlxcel surgery export`.

use std::path::Path;

use serde_json::json;

use super::bar::Bar;
use super::exit::Exit;
use super::failure::Outcome;
use super::planned::{DENIED, Planned};
use super::{interrupt, output};
use crate::cli::{Deny, ExportArgs, OutputFormat};
use crate::diagnostic::words::count;
use crate::diagnostic::{self, Diagnostic, Severity, bytes, render};
use crate::execute::{self, ExportError, Exported};
use crate::plan::{FORMAT_VERSION, Plan};
use crate::surgery::SurgeryFile;

pub(super) fn run(args: &ExportArgs) -> Outcome {
    interrupt::listen()?;
    interrupt::hold();
    let file = SurgeryFile::read(&args.file);
    let planned = Planned::on(&file, &args.model);
    let mut diagnostics = planned.diagnostics().to_vec();
    let mut code = Exit::failed_if(planned.fails(args.deny));
    let mut denied = planned.denied(args.deny);
    let mut done = None;
    if let (Some(plan), false) = (&planned.plan, planned.fails(args.deny)) {
        match export(plan, args) {
            Ok((exported, published)) => {
                diagnostics.extend(exported.report.diagnostics.iter().cloned());
                if !published {
                    code = Exit::Error;
                    denied = true;
                }
                done = Some(Done { plan, exported, published });
            }
            Err(error @ ExportError::Interrupted) => {
                output::stderr(&format!("{error}\n"));
                return Ok(Exit::Interrupted);
            }
            Err(error) => {
                code = Exit::Error;
                diagnostics.push(Diagnostic::from(&error));
            }
        }
    }
    let written = done.as_ref().filter(|done| done.published);
    match args.format() {
        OutputFormat::Json => {
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
                Some(_) => error.context(&format!(
                    "the checkpoint `{}` is complete, but the report is lost",
                    shown(&args.output)
                )),
                None => error,
            })?;
        }
        OutputFormat::Text => {
            // Notes are for plans; here the work is decided.
            diagnostics.retain(|one| one.severity() > Severity::Advice);
            output::stderr(&render(&diagnostics, Some(&file.source), output::stderr_look()));
            let mut lines = done.as_ref().map(|done| done.lines(&args.output)).unwrap_or_default();
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

/// An executed plan.
struct Done<'p> {
    plan: &'p Plan,
    exported: Exported,
    /// Whether the checkpoint exists: not if the report has warnings and they are denied.
    published: bool,
}

impl Done<'_> {
    /// The report: what was done to the weights, and what was written.
    fn lines(&self, path: &Path) -> Vec<String> {
        let Self { plan, exported, published } = self;
        let mut lines = exported.report.lines();
        lines.extend(exported.cleared.iter().map(|path| cleared(path)));
        if !published {
            return lines;
        }
        let path = shown(path);
        let size = bytes(exported.bytes);
        let written = format!("wrote `{path}`: {size}, {}", count(exported.tensors, "tensor"));
        lines.push(match plan.digest() {
            Some(digest) => format!("{written}, digest {digest}"),
            None => format!("{written}, unchanged: the surgery file has no effect"),
        });
        lines
    }
}

/// The line about a removed leftover.
pub(super) fn cleared(path: &Path) -> String {
    format!("removed `{}`, left behind by a killed run", shown(path))
}

/// A path without control characters, which a terminal would obey.
fn shown(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "\u{fffd}")
}

/// Writes the checkpoint, and returns whether it was kept.
fn export(plan: &Plan, args: &ExportArgs) -> Result<(Exported, bool), ExportError> {
    let mut bar = Bar::bytes("exporting");
    let progress = &mut |done, total| bar.set(done, total);
    let export = execute::write(plan, &args.output, progress, interrupt::stop())?;
    // What rounding did is known only now, before the output gets its name.
    match args.deny {
        Some(Deny::Warnings) if !export.exported().report.diagnostics.is_empty() => {
            Ok((export.discard(), false))
        }
        _ => Ok((export.publish()?, true)),
    }
}
