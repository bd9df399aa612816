//! What operations come to: edits, programs, warnings and advice, on small checkpoints of many layouts.

mod digest;
mod edits;
mod heads;
mod laws;
mod remarks;
mod whole;

use std::path::Path;

use mlxcel::internals::diagnostic::{Look, render};
use mlxcel::internals::plan::{Action, Region};
use mlxcel::{Checkpoint, Code, Diagnostic, Plan, Refusal, Severity, SurgeryFile, plan};

use crate::sparse::{self, fixtures};

/// A surgery file of these operations (flow mappings, one a line), read as if it stood beside the conformance cases,
/// so that donors are `../models/…`.
fn file(operations: &str) -> SurgeryFile {
    let mut text = String::from("version: 1\noperations:\n");
    for line in operations.trim().lines() {
        text.extend(["  - {", line.trim(), "}\n"]);
    }
    SurgeryFile::parse(&fixtures("conformance/surgery/noop/surgery.yaml"), text.as_bytes())
}

fn model(name: &str) -> Checkpoint {
    Checkpoint::open(&fixtures("conformance/surgery/models").join(name)).expect("a fixture can be opened")
}

fn outcome(name: &str, operations: &str) -> Result<Plan, Refusal> {
    plan(&file(operations), model(name))
}

#[track_caller]
fn planned(name: &str, operations: &str) -> Plan {
    outcome(name, operations).unwrap_or_else(|refusal| {
        panic!("{}", render(&refusal.diagnostics, Some(&file(operations).source), Look::PLAIN))
    })
}

/// The errors of a refused file.
#[track_caller]
fn refused(name: &str, operations: &str) -> Vec<Diagnostic> {
    let refusal = outcome(name, operations).expect_err("the file is refused");
    refusal.diagnostics.into_iter().filter(|d| d.severity() == Severity::Error).collect()
}

/// The codes of warnings and advice, in file order.
fn codes(plan: &Plan) -> Vec<Code> {
    plan.diagnostics().iter().map(|d| d.code).collect()
}

/// The edited tensors of a plan and what happens to each, as text.
fn programs(plan: &Plan) -> Vec<String> {
    plan.programs()
        .iter()
        .map(|program| {
            let actions: Vec<String> = program.actions().iter().map(|(_, action)| describe(action)).collect();
            format!("{}: {}", program.key(), actions.join(", "))
        })
        .collect()
}

fn describe(action: &Action) -> String {
    match action {
        Action::Scale { factor } => format!("× {factor}"),
        Action::Add { donor, alpha } => format!("+ {alpha} · {}:{}", donor.donor, donor.key),
        Action::Zero { region: Region::Whole } => "0".into(),
        Action::Zero { region: Region::Slices { axis, ranges } } => {
            format!("0 in {} {ranges:?}", if *axis == 0 { "rows" } else { "columns" })
        }
        Action::Replace { donor } => format!("= {}:{}", donor.donor, donor.key),
        Action::Blend { a, b, ratio, method } => {
            format!("{method:?} {ratio} of {}:{} and {}:{}", a.donor, a.key, b.donor, b.key)
        }
    }
}

/// A checkpoint made of a header list and a config.
fn made(dir: &Path, config: &str, list: &str) -> Checkpoint {
    sparse::write(&dir.join("model.safetensors"), list);
    std::fs::write(dir.join("config.json"), config).expect("a config can be written");
    Checkpoint::open(dir).expect("a made checkpoint can be opened")
}
