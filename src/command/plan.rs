//! `mlxcel surgery plan`.

use serde_json::Value;

use super::report::{Answer, DENIED};
use super::{Exit, Outcome, output};
use crate::cli::{PlanArgs, PlanFormat};
use crate::diagnostic::{Severity, render};
use crate::plan::render::text::{Detail, explain};
use crate::surgery::SurgeryFile;

pub(super) fn run(args: &PlanArgs) -> Outcome {
    let file = SurgeryFile::read(&args.file);
    let answer = Answer::planned(&file, &args.model);
    match args.format() {
        PlanFormat::Json => {
            output::stdout(&format!("{:#}\n", Value::from(answer.json(&file, Some(&args.model)))))?;
        }
        PlanFormat::Text => {
            let mut diagnostics = answer.diagnostics().to_vec();
            if answer.plan.is_some() {
                // The plan shows advice under its operation, in a line, and that is enough for advice.
                diagnostics.retain(|one| one.severity() > Severity::Advice);
            }
            output::stderr(&render(&diagnostics, Some(&file.source), output::stderr_look()));
            if answer.denied(args.deny) {
                output::stderr(&format!("{DENIED}\n"));
            }
            if let Some(plan) = &answer.plan {
                let look = if args.all { output::list_look() } else { output::look() };
                // On one terminal each warning is told once: above, with its help.
                let detail = Detail { all: args.all, warnings: !output::one_terminal() };
                output::stdout(&explain(plan, &file, look, detail))?;
            }
        }
    }
    Ok(Exit::failed_if(answer.fails(args.deny)))
}
