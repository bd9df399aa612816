//! What `generate` and `score` have in common: from a model directory and a surgery file to a model in memory, and
//! everything that is said on the way.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use miette::{IntoDiagnostic, WrapErr, miette};
use serde_json::{Value, json};

use super::bar::Bar;
use super::{Exit, output};
use crate::checkpoint::{Checkpoint, ReadError, ReadErrorKind};
use crate::cli::{DtypeChoice, WeightsArgs};
use crate::diagnostic::{Code, Diagnostic, Severity, Source, render};
use crate::load::{Loaded, Options, load, load_beside};
use crate::plan::{self, Plan, Refusal};
use crate::surgery::SurgeryFile;
use crate::weights::{Precision, Progress};
use crate::{generate, mlx};
use generate::MAX_TEXT_BYTES;

/// Why a command ends before its end.
pub(super) enum Ended {
    /// Everything has been said.
    Said(Exit),
    /// This is still to be said.
    Failed(miette::Report),
}

impl From<miette::Report> for Ended {
    fn from(report: miette::Report) -> Self {
        Self::Failed(report)
    }
}

impl From<generate::Error> for Ended {
    fn from(error: generate::Error) -> Self {
        Self::Failed(match error.help() {
            Some(help) => miette!(help = help.into_owned(), "{error}"),
            None => miette!("{error}"),
        })
    }
}

/// Turns what a command came to into its outcome.
pub(super) fn outcome(ended: Result<Exit, Ended>) -> super::Outcome {
    match ended {
        Ok(code) | Err(Ended::Said(code)) => Ok(code),
        Err(Ended::Failed(report)) => Err(report),
    }
}

/// A surgery file and its plan: all that is known before a weight is read.
pub(super) struct Session<'a> {
    args: &'a WeightsArgs,
    quiet: bool,
    source: Option<Source>,
    pub(super) plan: Plan,
}

impl<'a> Session<'a> {
    /// Settles what will be done to the weights. Nothing but headers is read.
    pub(super) fn open(args: &'a WeightsArgs, quiet: bool) -> Result<Self, Ended> {
        let Some(path) = args.surgery_file() else {
            let base = Checkpoint::open(&args.model).map_err(|errors| {
                say(&errors.iter().map(diagnostic).collect::<Vec<_>>(), None);
                Ended::Said(Exit::Failed)
            })?;
            return Ok(Self { args, quiet, source: None, plan: Plan::identity(base) }.opened());
        };
        let file = SurgeryFile::read(path);
        let planned = match Checkpoint::open(&args.model) {
            Ok(base) => plan::plan(&file, base),
            Err(errors) => Err(plan::refuse(&file, &errors)),
        };
        match planned {
            Ok(plan) => Ok(Self { args, quiet, source: Some(file.source), plan }.opened()),
            Err(Refusal { diagnostics }) => {
                if args.surgery_by_environment() {
                    let shown = path.display();
                    output::stderr(&format!("the surgery file `{shown}` is named by `MLXCEL_SURGERY`\n\n"));
                }
                say(&diagnostics, Some(&file.source));
                Err(Ended::Said(Exit::Failed))
            }
        }
    }

    /// The plan, and the text it came from.
    pub(super) fn into_parts(self) -> (Plan, Option<Source>) {
        (self.plan, self.source)
    }

    fn opened(self) -> Self {
        if !self.quiet {
            // Advice is for whoever writes the file: at each run it would drown what matters.
            let (advice, rest): (Vec<Diagnostic>, Vec<Diagnostic>) = self
                .plan
                .diagnostics()
                .iter()
                .cloned()
                .partition(|found| found.severity() == Severity::Advice);
            say(&rest, self.source.as_ref());
            if !advice.is_empty() {
                let count = advice.len();
                let pieces = if count == 1 { "a piece".to_owned() } else { format!("{count} pieces") };
                output::stderr(&format!("{pieces} of advice: see `mlxcel surgery plan`\n"));
            }
        }
        self
    }

    /// Reads the weights, operates on them and builds the model.
    pub(super) fn load(self) -> Result<Model, Ended> {
        self.load_by(|plan, options, progress| load(plan, options, progress).map(|loaded| (loaded, ())))
            .map(|(model, ())| model)
    }

    /// The same, and the model as it is without surgery.
    pub(super) fn load_beside(self) -> Result<(Model, Box<dyn crate::model::Model>), Ended> {
        self.load_by(load_beside)
    }

    fn load_by<T>(
        self,
        load: impl FnOnce(Plan, Options, &mut dyn FnMut(Progress)) -> Result<(Loaded, T), Vec<Diagnostic>>,
    ) -> Result<(Model, T), Ended> {
        let Self { args, quiet, source, plan } = self;
        let mut bar = (!quiet).then(|| Bar::bytes("loading"));
        let options = Options { precision: precision(args.dtype) };
        let loaded = load(plan, options, &mut |progress| {
            if let Some(bar) = &mut bar {
                bar.set(progress.done, progress.total);
            }
        });
        drop(bar);
        let (loaded, more) = loaded.map_err(|diagnostics| {
            say(&diagnostics, source.as_ref());
            Ended::Said(Exit::Failed)
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
    /// The surgery file as it was named.
    surgery: Option<String>,
}

impl Model {
    /// One line an operation, what the surgery came to, how the weights are held.
    fn report(&self, source: Option<&Source>) {
        let Loaded { report, policy, timings, .. } = &self.loaded;
        if self.surgery.is_some() {
            for line in report.lines() {
                output::stderr(&format!("surgery: {line}\n"));
            }
            say(&report.diagnostics, source);
        }
        output::stderr(&format!("loaded in {}: {}\n", seconds(timings.total), policy.line()));
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

    /// Seconds that loading took, for the JSON object.
    pub(super) fn load_seconds(&self) -> f64 {
        self.loaded.timings.total.as_secs_f64()
    }
}

/// `-` is standard input.
pub(super) fn is_standard_input(name: &Path) -> bool {
    name.as_os_str() == "-"
}

/// All of standard input, as it is.
pub(super) fn standard_input() -> Result<String, Ended> {
    let mut bytes = Vec::new();
    let input = std::io::stdin().take(MAX_TEXT_BYTES + 1);
    { input }.read_to_end(&mut bytes).into_diagnostic().wrap_err("standard input cannot be read")?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        return Err(miette!("standard input is longer than {} MiB", MAX_TEXT_BYTES >> 20).into());
    }
    Ok(String::from_utf8(bytes).into_diagnostic().wrap_err("standard input is not UTF-8 text")?)
}

/// The most memory that this process has had so far, in bytes.
pub(super) fn peak_memory() -> Option<u64> {
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        return line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024);
    }
    mlx::peak_memory().ok().map(|bytes| bytes as u64)
}

/// Tokens a second; `None` where there is nothing to divide.
pub(super) fn rate(tokens: usize, time: Duration) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "no text has 2⁵² tokens")]
    let rate = tokens as f64 / time.as_secs_f64();
    (tokens > 0 && rate.is_finite()).then_some(rate)
}

/// `0.12 s`.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

pub(super) fn say(diagnostics: &[Diagnostic], source: Option<&Source>) {
    if !diagnostics.is_empty() {
        output::stderr(&render(diagnostics, source, output::stderr_look()));
    }
}

fn diagnostic(error: &ReadError) -> Diagnostic {
    let code = match error.kind {
        ReadErrorKind::BadIndex => Code::BadShardIndex,
        ReadErrorKind::NotFound | ReadErrorKind::Unreadable | ReadErrorKind::Forbidden => {
            Code::ModelUnreadable
        }
    };
    let diagnostic = Diagnostic::new(code, error.to_string());
    match &error.help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

pub(super) fn precision(choice: DtypeChoice) -> Precision {
    match choice {
        DtypeChoice::Auto => Precision::Auto,
        DtypeChoice::Native => Precision::Native,
        DtypeChoice::F32 => Precision::F32,
        DtypeChoice::F16 => Precision::F16,
        DtypeChoice::Bf16 => Precision::Bf16,
    }
}
