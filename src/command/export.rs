//! `mlxcel surgery export`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::bar::Bar;
use super::report::Answer;
use super::{INTERRUPTED, Outcome, output};
use crate::cli::{ExportArgs, PlanFormat};
use crate::diagnostic::{self, Diagnostic, Severity, render};
use crate::execute::{self, ExportError, Report};
use crate::plan::Plan;
use crate::plan::json::FORMAT_VERSION;
use crate::surgery::SurgeryFile;

/// Set by Ctrl-C, looked at between pieces of work.
static STOP: AtomicBool = AtomicBool::new(false);

pub(super) fn run(args: &ExportArgs) -> Outcome {
    // A second handler in one process is refused; then the first one does what it does.
    let _ = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    let file = SurgeryFile::read(&args.file);
    let answer = Answer::planned(&file, &args.model);
    let mut diagnostics = answer.diagnostics().to_vec();
    let mut code = ExitCode::from(u8::from(answer.fails(args.deny)));
    let mut done = None;
    if let (Some(plan), false) = (&answer.plan, answer.fails(args.deny)) {
        match export(plan, args) {
            Ok(report) => {
                diagnostics.extend(report.diagnostics.iter().cloned());
                if args.deny.is_some() && !report.diagnostics.is_empty() {
                    code = ExitCode::FAILURE;
                }
                done = Some((plan, report));
            }
            Err(error @ ExportError::Interrupted) => {
                output::stderr(&format!("{error}\n"));
                return Ok(ExitCode::from(INTERRUPTED));
            }
            Err(error) => {
                code = ExitCode::FAILURE;
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
                "report": done.as_ref().map(|(_, report)| report),
                "diagnostics": diagnostic::json(&diagnostics, Some(&file.source)),
            });
            output::stdout(&format!("{object:#}\n"))?;
        }
        PlanFormat::Text => {
            // Advice is for plans; what is asked for here is settled.
            diagnostics.retain(|one| one.severity() > Severity::Advice);
            output::stderr(&render(&diagnostics, Some(&file.source), output::stderr_look()));
            for line in done.iter().flat_map(|(_, report)| report.lines()) {
                output::stderr(&format!("{line}\n"));
            }
        }
    }
    Ok(code)
}

fn export(plan: &Plan, args: &ExportArgs) -> Result<Report, ExportError> {
    let mut bar = Bar::bytes("exporting");
    execute::export(plan, &args.output, &mut |done, total| bar.set(done, total), &STOP)
}
