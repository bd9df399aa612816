//! [`Session`]: from a model directory and a surgery file to a model in memory, with everything printed on the way. For
//! `generate`, `score` and `serve`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::bar::Bar;
use super::failure::Failure;
use super::output;
use super::planned::plan_on;
use crate::checkpoint::Checkpoint;
use crate::cli::{DtypeChoice, WeightsArgs};
use crate::diagnostic::{self, Diagnostic, Severity, Source, render};
use crate::generate::{self, MAX_TEXT_BYTES};
use crate::load::{LoadError, Loaded, Options, load, load_beside};
use crate::plan::{self, Plan, Refusal};
use crate::surgery::SurgeryFile;
use crate::weights::{Precision, Progress};

impl From<generate::Error> for Failure {
    fn from(error: generate::Error) -> Self {
        Self::Error { message: error.to_string(), help: error.help().map(Cow::into_owned) }
    }
}

/// A plan, and what it was made from. No weight has been read.
pub(super) struct Session<'a> {
    args: &'a WeightsArgs,
    quiet: bool,
    source: Option<Source>,
    pub(super) plan: Plan,
}

impl<'a> Session<'a> {
    /// Plans: opens the model and reads headers, but no weights.
    pub(super) fn open(args: &'a WeightsArgs, quiet: bool) -> Result<Self, Failure> {
        let Some(path) = args.surgery_file() else {
            let base = Checkpoint::open(&args.model).map_err(|errors| {
                print(&plan::base_refusals(&errors), None);
                Failure::Reported
            })?;
            return Ok(Self { args, quiet, source: None, plan: Plan::identity(base) }.opened());
        };
        let file = SurgeryFile::read(path);
        match plan_on(&file, &args.model) {
            Ok(plan) => Ok(Self { args, quiet, source: Some(file.source), plan }.opened()),
            Err(Refusal { diagnostics }) => {
                if args.surgery_by_environment() {
                    let name = path.display();
                    output::stderr(&format!("`MLXCEL_SURGERY` names the surgery file `{name}`\n\n"));
                }
                print(&diagnostics, Some(&file.source));
                Err(Failure::Reported)
            }
        }
    }

    /// The plan, and the surgery file's text.
    pub(super) fn into_parts(self) -> (Plan, Option<Source>) {
        (self.plan, self.source)
    }

    /// Prints warnings, and the number of notes: shown in full at each run, notes would hide what matters.
    fn opened(self) -> Self {
        if !self.quiet {
            let is_note = |found: &Diagnostic| found.severity() == Severity::Advice;
            let (notes, rest): (Vec<_>, Vec<_>) = self.plan.diagnostics().iter().cloned().partition(is_note);
            print(&rest, self.source.as_ref());
            if !notes.is_empty() {
                output::stderr(&(self.line_about(&notes) + "\n"));
            }
        }
        self
    }

    /// ``1 note (whole_model); run `mlxcel surgery plan joy.yaml --model DIR` for details``
    fn line_about(&self, notes: &[Diagnostic]) -> String {
        let names: BTreeSet<&str> = notes.iter().map(|note| note.code.name()).collect();
        let file = self.plan.file().map_or_else(|| "FILE".into(), Path::to_string_lossy);
        format!(
            "{} ({}); run `mlxcel surgery plan {file} --model {}` for details",
            diagnostic::summary(notes),
            Vec::from_iter(names).join(", "),
            self.args.model.display()
        )
    }

    /// Loads the weights with the surgery applied, and builds the model.
    pub(super) fn load(self) -> Result<Model, Failure> {
        self.load_by(|plan, options, progress| load(plan, options, progress).map(|loaded| (loaded, ())))
            .map(|(model, ())| model)
    }

    /// Does the same, and builds the model without surgery too.
    pub(super) fn load_beside(self) -> Result<(Model, Box<dyn crate::model::Model>), Failure> {
        self.load_by(load_beside)
    }

    fn load_by<T>(
        self,
        load: impl FnOnce(Plan, Options, &mut dyn FnMut(Progress)) -> Result<(Loaded, T), LoadError>,
    ) -> Result<(Model, T), Failure> {
        let Self { args, quiet, source, plan } = self;
        let mut bar = (!quiet).then(|| Bar::bytes("loading"));
        let options = Options { precision: precision(args.dtype) };
        let loaded = load(plan, options, &mut |progress| {
            if let Some(bar) = &mut bar {
                bar.set(progress.done, progress.total);
            }
        });
        drop(bar);
        let (loaded, more) = loaded.map_err(|error| {
            print(&[Diagnostic::from(&error)], source.as_ref());
            Failure::Reported
        })?;
        let model = Model { loaded, surgery: args.surgery_file().map(|file| file.display().to_string()) };
        if !quiet {
            model.report(source.as_ref());
        }
        Ok((model, more))
    }
}

/// A model in memory.
pub(super) struct Model {
    pub(super) loaded: Loaded,
    /// The surgery file's path as given.
    surgery: Option<String>,
}

impl Model {
    /// Prints one line per operation, the whole surgery's result, and how the model computes.
    fn report(&self, source: Option<&Source>) {
        let Loaded { report, policy, timings, .. } = &self.loaded;
        if self.surgery.is_some() {
            for line in report.lines() {
                output::stderr(&(surgery_line(&line) + "\n"));
            }
            print(&report.diagnostics, source);
        }
        output::stderr(&format!("loaded in {}; {}\n", seconds(timings.total), policy.line()));
    }

    /// `surgery` of the JSON object.
    pub(super) fn surgery(&self) -> Value {
        let Some(file) = &self.surgery else { return Value::Null };
        let Loaded { plan, report, .. } = &self.loaded;
        json!({
            "file": file,
            "digest": plan.digest(),
            "weights_sha256": report.weights_sha256,
            "operations": plan.summary().operations,
            "tensors_edited": plan.summary().tensors_edited,
        })
    }

    /// The loading time in seconds.
    pub(super) fn load_seconds(&self) -> f64 {
        self.loaded.timings.total.as_secs_f64()
    }
}

/// Whether a name means standard input.
pub(super) fn is_standard_input(name: &Path) -> bool {
    name.as_os_str() == "-"
}

/// All of standard input.
pub(super) fn standard_input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let input = std::io::stdin().take(MAX_TEXT_BYTES + 1);
    { input }.read_to_end(&mut bytes).map_err(|error| Failure::io("cannot read standard input", &error))?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        return Err(Failure::new(format!("standard input is longer than {} MiB", MAX_TEXT_BYTES >> 20)));
    }
    String::from_utf8(bytes)
        .map_err(|error| Failure::new(format!("standard input is not UTF-8 text: {}", error.utf8_error())))
}

/// Tokens per second; `None` if there are none or no time passed.
pub(super) fn rate(tokens: usize, time: Duration) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "no text has 2⁵² tokens")]
    let rate = tokens as f64 / time.as_secs_f64();
    (tokens > 0 && rate.is_finite()).then_some(rate)
}

/// `0.12 s`.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// A line of the report: `surgery #1 scale: …` of an operation, `surgery: …` of the whole.
pub(super) fn surgery_line(line: &str) -> String {
    let colon = if line.starts_with('#') { "" } else { ":" };
    format!("surgery{colon} {line}")
}

/// Prints diagnostics on standard error.
pub(super) fn print(diagnostics: &[Diagnostic], source: Option<&Source>) {
    if !diagnostics.is_empty() {
        output::stderr(&render(diagnostics, source, output::stderr_look()));
    }
}

/// The policy that `--dtype` selects.
pub(super) fn precision(choice: DtypeChoice) -> Precision {
    match choice {
        DtypeChoice::Auto => Precision::Auto,
        DtypeChoice::Native => Precision::Native,
        DtypeChoice::F32 => Precision::F32,
        DtypeChoice::F16 => Precision::F16,
        DtypeChoice::Bf16 => Precision::Bf16,
    }
}
