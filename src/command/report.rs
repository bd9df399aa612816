//! What `plan` and `check` have in common: the [`Answer`] to a surgery file, whether it fails the run, its JSON object.

use std::path::Path;

use serde_json::{Map, Value};

use crate::checkpoint::Checkpoint;
use crate::cli::Deny;
use crate::diagnostic::{self, Diagnostic, Severity};
use crate::plan::render::json::{self, FORMAT_VERSION};
use crate::plan::{self, Plan, Refusal};
use crate::surgery::SurgeryFile;

/// What is said where nothing but `--deny warnings` fails a run.
pub(super) const DENIED: &str = "warnings are denied by `--deny warnings`";

/// What the planner says of a surgery file.
#[derive(Debug)]
pub(super) struct Answer {
    /// The plan, where one was asked for and nothing prevents it.
    pub(super) plan: Option<Plan>,
    /// What was found where there is no plan; a plan has its own.
    found: Vec<Diagnostic>,
}

impl Answer {
    /// Plans a file on a model directory. A model that cannot be read is reported beside the file's own mistakes.
    pub(super) fn planned(file: &SurgeryFile, model: &Path) -> Self {
        let planned = match Checkpoint::open(model) {
            Ok(base) => plan::plan(file, base),
            Err(errors) => Err(plan::refuse(file, &errors)),
        };
        match planned {
            Ok(plan) => Self { plan: Some(plan), found: Vec::new() },
            Err(Refusal { diagnostics }) => Self::checked(diagnostics),
        }
    }

    /// Without a plan.
    pub(super) fn checked(found: Vec<Diagnostic>) -> Self {
        Self { plan: None, found }
    }

    /// Everything that was found.
    pub(super) fn diagnostics(&self) -> &[Diagnostic] {
        self.plan.as_ref().map_or(&self.found, Plan::diagnostics)
    }

    /// Whether a run with this answer ends with exit code 1.
    pub(super) fn fails(&self, deny: Option<Deny>) -> bool {
        let least = match deny {
            Some(Deny::Warnings) => Severity::Warning,
            None => Severity::Error,
        };
        self.diagnostics().iter().any(|diagnostic| diagnostic.severity() >= least)
    }

    /// Whether it would not without what is denied.
    pub(super) fn denied(&self, deny: Option<Deny>) -> bool {
        self.fails(deny) && !self.fails(None)
    }

    /// The JSON object: the plan's, or the same without `digest`, `operations` and `summary`.
    pub(super) fn json(&self, file: &SurgeryFile, model: Option<&Path>) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("format_version".to_owned(), FORMAT_VERSION.into());
        object.insert("file".to_owned(), file.source.path.to_string_lossy().into());
        object.insert("model".to_owned(), model.map(Path::to_string_lossy).into());
        if let Some(plan) = &self.plan {
            object.extend(json::json(plan));
        }
        object.insert(
            "diagnostics".to_owned(),
            diagnostic::json(self.diagnostics(), Some(&file.source)).into(),
        );
        object
    }
}
