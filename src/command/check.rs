//! `mlxcel surgery check`: validates files, for CI.

use std::cmp::Reverse;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::report::Answer;
use super::{Outcome, output};
use crate::checkpoint::Checkpoint;
use crate::cli::{CheckArgs, CheckFormat};
use crate::diagnostic::{self, Diagnostic, Look, Severity};
use crate::plan::{self, json::FORMAT_VERSION};
use crate::surgery::SurgeryFile;

pub(super) fn run(args: &CheckArgs) -> Outcome {
    let checked: Vec<Checked> = args.files.iter().map(|path| Checked::new(path, args)).collect();
    let text = match args.format() {
        CheckFormat::Text => text(&checked, output::look()),
        CheckFormat::Json => format!("{:#}\n", json(&checked, args.model.as_deref())),
        CheckFormat::Sarif => {
            let files: Vec<_> =
                checked.iter().map(|one| (one.answer.diagnostics(), Some(&one.file.source))).collect();
            format!("{:#}\n", diagnostic::sarif(&files))
        }
        CheckFormat::Github => {
            let annotations =
                checked.iter().map(|one| diagnostic::github(&errors_first(one), Some(&one.file.source)));
            annotations.collect::<String>() + &summary(&checked) + "\n"
        }
    };
    output::stdout(&text)?;
    let failed = checked.iter().any(|one| one.answer.fails(args.deny));
    Ok(ExitCode::from(u8::from(failed)))
}

/// A file and what the planner says of it.
struct Checked {
    file: SurgeryFile,
    answer: Answer,
}

impl Checked {
    fn new(path: &Path, args: &CheckArgs) -> Self {
        let file = SurgeryFile::read(path);
        let answer = match &args.model {
            None => Answer::checked(plan::check(&file, !args.no_donors)),
            Some(model) if args.no_donors => Answer::checked(match Checkpoint::open(model) {
                Ok(base) => plan::check_without_donors(&file, &base),
                Err(errors) => [plan::base_refusals(&errors), plan::check(&file, false)].concat(),
            }),
            Some(model) => Answer::planned(&file, model),
        };
        Self { file, answer }
    }
}

/// A file's diagnostics, errors first, otherwise in file order.
fn errors_first(checked: &Checked) -> Vec<Diagnostic> {
    let mut sorted = checked.answer.diagnostics().to_vec();
    sorted.sort_by_key(|one| Reverse(one.severity()));
    sorted
}

fn text(checked: &[Checked], look: Look) -> String {
    let file = |one: &Checked| match one.answer.diagnostics() {
        [] => format!("{}: nothing to say\n", one.file.source.path.display()),
        _ => diagnostic::render(&errors_first(one), Some(&one.file.source), look),
    };
    let files: String = checked.iter().map(file).collect();
    // Of one file that is fine everything has been said.
    match checked {
        [one] if one.answer.diagnostics().is_empty() => files,
        _ => files + &summary(checked) + "\n",
    }
}

/// `3 files: 2 errors, 1 warning`
fn summary(checked: &[Checked]) -> String {
    let all: Vec<Diagnostic> = checked.iter().flat_map(|one| one.answer.diagnostics()).cloned().collect();
    let counts = diagnostic::summary(&all);
    let files = if checked.len() == 1 { "1 file".to_owned() } else { format!("{} files", checked.len()) };
    format!("{files}: {}", if counts.is_empty() { "nothing to say" } else { &counts })
}

fn json(checked: &[Checked], model: Option<&Path>) -> Value {
    let count = |severity| {
        let all = checked.iter().flat_map(|one| one.answer.diagnostics());
        all.filter(|one| one.severity() == severity).count()
    };
    let files: Vec<_> = checked.iter().map(|one| one.answer.json(&one.file, model)).collect();
    json!({
        "format_version": FORMAT_VERSION,
        "files": files,
        "summary": {
            "files": checked.len(),
            "errors": count(Severity::Error),
            "warnings": count(Severity::Warning),
        },
    })
}
