//! `mlxcel surgery plan`.

use serde_json::Value;

use super::exit::Exit;
use super::failure::Outcome;
use super::output;
use super::planned::{DENIED, Planned};
use crate::cli::{OutputFormat, PlanArgs};
use crate::diagnostic::{Severity, render};
use crate::plan::render::text::{Detail, explain};
use crate::surgery::SurgeryFile;

pub(super) fn run(args: &PlanArgs) -> Outcome {
    let file = SurgeryFile::read(&args.file);
    let planned = Planned::on(&file, &args.model);
    match args.format() {
        OutputFormat::Json => {
            output::stdout(&format!("{:#}\n", Value::from(planned.json(&file, Some(&args.model)))))?;
        }
        OutputFormat::Text => {
            let mut diagnostics = planned.diagnostics().to_vec();
            if planned.plan.is_some() {
                // The plan shows each note in a line under its operation, and that is enough for notes.
                diagnostics.retain(|one| one.severity() > Severity::Advice);
            }
            output::stderr(&render(&diagnostics, Some(&file.source), output::stderr_look()));
            if planned.denied(args.deny) {
                output::stderr(&format!("{DENIED}\n"));
            }
            if let Some(plan) = &planned.plan {
                let look = if args.all { output::list_look() } else { output::look() };
                // On one terminal each warning is shown once: above, with its help.
                let detail = Detail { all: args.all, warnings: !output::one_terminal() };
                output::stdout(&explain(plan, &file, look, detail))?;
            }
        }
    }
    Ok(Exit::failed_if(planned.fails(args.deny)))
}
