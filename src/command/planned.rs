//! [`Planned`]: a surgery file's plan or diagnostics, whether they fail the run, and their JSON object.

use std::path::Path;

use serde_json::{Map, Value};

use crate::checkpoint::Checkpoint;
use crate::cli::Deny;
use crate::diagnostic::{self, Diagnostic, Severity};
use crate::plan::FORMAT_VERSION;
use crate::plan::render::json;
use crate::plan::{self, Plan, Refusal};
use crate::surgery::SurgeryFile;

/// Printed where only `--deny warnings` fails a run.
pub(super) const DENIED: &str = "warnings are errors because of `--deny warnings`";

/// Plans a file on a model directory. A model that cannot be read is reported beside the file's own mistakes.
pub(super) fn plan_on(file: &SurgeryFile, model: &Path) -> Result<Plan, Refusal> {
    match Checkpoint::open(model) {
        Ok(base) => plan::plan(file, base),
        Err(errors) => Err(plan::refuse(file, &errors)),
    }
}

/// A surgery file's plan or diagnostics.
#[derive(Debug)]
pub(super) struct Planned {
    /// The plan, if there is a model and no error.
    pub(super) plan: Option<Plan>,
    /// The diagnostics if there is no plan; a plan has its own.
    found: Vec<Diagnostic>,
}

impl Planned {
    /// Plans a file on a model directory.
    pub(super) fn on(file: &SurgeryFile, model: &Path) -> Self {
        match plan_on(file, model) {
            Ok(plan) => Self { plan: Some(plan), found: Vec::new() },
            Err(Refusal { diagnostics }) => Self::without_plan(diagnostics),
        }
    }

    pub(super) fn without_plan(found: Vec<Diagnostic>) -> Self {
        Self { plan: None, found }
    }

    /// All diagnostics.
    pub(super) fn diagnostics(&self) -> &[Diagnostic] {
        self.plan.as_ref().map_or(&self.found, Plan::diagnostics)
    }

    /// Whether the run ends with exit code 1.
    pub(super) fn fails(&self, deny: Option<Deny>) -> bool {
        let least = match deny {
            Some(Deny::Warnings) => Severity::Warning,
            None => Severity::Error,
        };
        self.diagnostics().iter().any(|diagnostic| diagnostic.severity() >= least)
    }

    /// Whether the run fails only because of `--deny`.
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
