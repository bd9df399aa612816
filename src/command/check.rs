//! `mlxcel surgery check`: validates files, for CI.

use std::cmp::Reverse;
use std::path::Path;

use serde_json::{Value, json};

use super::exit::Exit;
use super::failure::Outcome;
use super::output;
use super::planned::{DENIED, Planned};
use crate::checkpoint::Checkpoint;
use crate::cli::{CheckArgs, CheckFormat, Deny};
use crate::diagnostic::words::count;
use crate::diagnostic::{self, Diagnostic, Look, Severity};
use crate::plan::{self, FORMAT_VERSION};
use crate::surgery::SurgeryFile;

pub(super) fn run(args: &CheckArgs) -> Outcome {
    let checked: Vec<Checked> = args.files.iter().map(|path| Checked::new(path, args)).collect();
    let text = match args.format() {
        CheckFormat::Text => text(&checked, args.deny, output::look()),
        CheckFormat::Json => format!("{:#}\n", json(&checked, args)),
        CheckFormat::Sarif => {
            let files: Vec<_> =
                checked.iter().map(|one| (one.planned.diagnostics(), Some(&one.file.source))).collect();
            format!("{:#}\n", diagnostic::sarif(&files))
        }
        CheckFormat::Github => {
            let annotations =
                checked.iter().map(|one| diagnostic::github(&errors_first(one), Some(&one.file.source)));
            annotations.collect::<String>() + &summary(&checked, args.deny) + "\n"
        }
    };
    output::stdout(&text)?;
    Ok(Exit::failed_if(failed(&checked, args.deny) > 0))
}

/// The number of files that fail.
fn failed(checked: &[Checked], deny: Option<Deny>) -> usize {
    checked.iter().filter(|one| one.planned.fails(deny)).count()
}

/// A file, and its plan or diagnostics.
struct Checked {
    file: SurgeryFile,
    planned: Planned,
}

impl Checked {
    fn new(path: &Path, args: &CheckArgs) -> Self {
        let file = SurgeryFile::read(path);
        let planned = match &args.model {
            None => Planned::without_plan(plan::check(&file, !args.no_donors)),
            Some(model) if args.no_donors => Planned::without_plan(match Checkpoint::open(model) {
                Ok(base) => plan::check_without_donors(&file, &base),
                Err(errors) => [plan::base_refusals(&errors), plan::check(&file, false)].concat(),
            }),
            Some(model) => Planned::on(&file, model),
        };
        Self { file, planned }
    }
}

/// A file's diagnostics, errors first, otherwise in file order.
fn errors_first(checked: &Checked) -> Vec<Diagnostic> {
    let mut sorted = checked.planned.diagnostics().to_vec();
    sorted.sort_by_key(|one| Reverse(one.severity()));
    sorted
}

fn text(checked: &[Checked], deny: Option<Deny>, look: Look) -> String {
    let file = |one: &Checked| match one.planned.diagnostics() {
        [] => format!("{}: ok\n", one.file.source.path.display()),
        _ => diagnostic::render(&errors_first(one), Some(&one.file.source), look),
    };
    let files: String = checked.iter().map(file).collect();
    // A single file that is right needs no summary.
    match checked {
        [one] if one.planned.diagnostics().is_empty() => files,
        _ => files + &summary(checked, deny) + "\n",
    }
}

/// `3 files, 1 failed: 2 errors, 1 warning`, and in a second line whether some fail by warnings alone.
fn summary(checked: &[Checked], deny: Option<Deny>) -> String {
    let all: Vec<Diagnostic> = checked.iter().flat_map(|one| one.planned.diagnostics()).cloned().collect();
    let counts = diagnostic::summary(&all);
    let files = count(checked.len(), "file");
    let failed = match (failed(checked, deny), checked.len()) {
        (0, _) | (1, 1) => String::new(),
        (all, files) if all == files => ", all failed".to_owned(),
        (some, _) => format!(", {some} failed"),
    };
    let counts = if counts.is_empty() { "ok" } else { &counts };
    let denied = checked.iter().any(|one| one.planned.denied(deny));
    let denied = if denied { format!("\n{DENIED}") } else { String::new() };
    format!("{files}{failed}: {counts}{denied}")
}

fn json(checked: &[Checked], args: &CheckArgs) -> Value {
    let count = |severity| {
        let all = checked.iter().flat_map(|one| one.planned.diagnostics());
        all.filter(|one| one.severity() == severity).count()
    };
    let files: Vec<_> =
        checked.iter().map(|one| one.planned.json(&one.file, args.model.as_deref())).collect();
    json!({
        "format_version": FORMAT_VERSION,
        "files": files,
        "summary": {
            "files": checked.len(),
            "failed": failed(checked, args.deny),
            "errors": count(Severity::Error),
            "warnings": count(Severity::Warning),
        },
    })
}
