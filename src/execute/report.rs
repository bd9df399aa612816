//! [`Report`]: what surgery did to the weights, as lines of text and for JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::error::Place;
use super::kernel::{Counters, Outcome};
use super::program_run::ProgramRun;
use crate::diagnostic::words::count;
use crate::diagnostic::{Code, Diagnostic, bytes};
use crate::plan::{Plan, Program};

/// What was done, in numbers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Edited tensors.
    pub tensors: u64,
    /// Bytes read from the base's edited tensors.
    pub base_bytes: u64,
    /// Bytes read from donors (both passes of a SLERP count).
    pub donor_bytes: u64,
    /// Bytes of the results.
    pub result_bytes: u64,
    /// Elements of the results that are not finite because an input is not.
    pub not_finite: u64,
    /// SHA-256 over the edited tensors' bytes in key order, in hex; `None` if nothing was edited or it was not computed.
    pub weights_sha256: Option<String>,
    /// One entry per operation of the file, in file order, including those without effect.
    pub operations: Vec<OperationReport>,
    /// `lost_deltas` and `underflow`.
    #[serde(skip)]
    pub diagnostics: Vec<Diagnostic>,
}

/// What one operation did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OperationReport {
    /// Its place in the file, from 0.
    pub index: usize,
    /// `name:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `scale`, `add`, …
    pub op: &'static str,
    /// 1-based line in the surgery file.
    pub line: usize,
    /// Tensors it acted on.
    pub tensors: u64,
    /// Bytes of those tensors.
    pub bytes: u64,
    /// Elements whose stored bits changed (all elements of a tensor that it overwrites without reading).
    pub changed: u64,
    /// Elements that it should have changed before rounding.
    pub deltas: u64,
    /// Elements whose change was not 0 but was lost in rounding to the tensor's dtype.
    pub lost: u64,
    /// SLERPs done as LERP because their tensors were (nearly) parallel, zero or not finite.
    pub lerp_fallbacks: u64,
    /// ‖after − before‖ / ‖before‖ over all tensors whose earlier values were read; `None` if there are none, or if they are
    /// 0 or not finite.
    pub relative_change: Option<f64>,
    /// ‖rounded − exact‖ / ‖exact‖ over the scales and biases of affine sets that it scaled.
    pub effective_error: Option<f64>,
    /// Scales of affine sets that became subnormal or zero.
    pub underflowed: u64,
}

/// Collects the numbers of a report while programs run.
#[derive(Debug)]
pub(super) struct Ledger {
    report: Report,
    /// One for each operation.
    tallies: Vec<Counters>,
}

impl Ledger {
    pub(super) fn new(plan: &Plan) -> Self {
        let operations = plan.steps().iter().map(|step| OperationReport {
            index: step.index.position(),
            name: step.name.clone(),
            op: step.op.name(),
            line: step.line,
            ..OperationReport::default()
        });
        let report = Report { operations: operations.collect(), ..Report::default() };
        Self { tallies: vec![Counters::default(); plan.steps().len()], report }
    }

    /// Adds one edited tensor.
    pub(super) fn enter(&mut self, program: &Program, run: &ProgramRun<'_>, outcome: &Outcome) {
        let bytes = program.result_bytes();
        self.report.tensors += 1;
        self.report.base_bytes += run.base_bytes;
        self.report.donor_bytes += run.donor_bytes;
        self.report.result_bytes += bytes;
        self.report.not_finite += outcome.passed;
        let elements = run.recipe.elements() as u64;
        let whole = Counters { changed: elements, deltas: elements, ..Counters::default() };
        let start = run.start_of.map(|step| (step, &whole));
        let mut acted = Vec::new();
        for (step, tally) in start.into_iter().chain(run.step_of.iter().copied().zip(&outcome.steps)) {
            self.tallies[step.position()].add(tally);
            if !acted.contains(&step) {
                acted.push(step);
            }
        }
        for step in acted {
            self.report.operations[step.position()].tensors += 1;
            self.report.operations[step.position()].bytes += bytes;
        }
        if let (Some(step), true) = (run.start_of, run.fell_back) {
            self.report.operations[step.position()].lerp_fallbacks += 1;
        }
    }

    /// Completes the report.
    pub(super) fn close(mut self, digest: Option<&[u8]>) -> Report {
        for (operation, tally) in self.report.operations.iter_mut().zip(&self.tallies) {
            operation.changed = tally.changed;
            operation.deltas = tally.deltas;
            operation.lost = tally.lost;
            operation.relative_change = norm_ratio(tally.change_square, tally.before_square);
            operation.effective_error = norm_ratio(tally.error_square, tally.exact_square);
            operation.underflowed = tally.underflowed;
            self.report.diagnostics.extend(warnings(operation, tally.scales));
        }
        if let (Some(digest), 1..) = (digest, self.report.tensors) {
            let mut hex = String::with_capacity(64);
            for byte in digest {
                let _ = write!(hex, "{byte:02x}");
            }
            self.report.weights_sha256 = Some(hex);
        }
        self.report
    }
}

fn norm_ratio(part: f64, whole: f64) -> Option<f64> {
    let ratio = part.sqrt() / whole.sqrt();
    (whole.is_finite() && ratio.is_finite()).then_some(ratio)
}

fn warnings(operation: &OperationReport, scales: u64) -> impl Iterator<Item = Diagnostic> {
    let OperationReport { index, op, line, lost, deltas, underflowed, .. } = operation;
    let place = Place { index: *index, op, line: *line };
    let lost_deltas = (*lost * 2 > *deltas).then(|| {
        let message = format!("{place}: {lost} of {deltas} changes were lost to rounding");
        Diagnostic::new(Code::LostDeltas, message)
            .help("use a larger factor or alpha, or a base with a wider dtype: the changes are smaller than half a unit in the last place")
    });
    let underflow = (*underflowed * 100 > scales).then(|| {
        let message = format!("{place}: {underflowed} of {scales} scales became subnormal or zero");
        Diagnostic::new(Code::Underflow, message)
            .help("use a larger factor, or an unquantized base: the weights of those groups lose precision")
    });
    lost_deltas.into_iter().chain(underflow)
}

impl Report {
    /// The report as text: one line per operation, and one for all of them.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.operations.iter().map(OperationReport::sentence).collect();
        if self.tensors > 0 {
            let mut line = format!("{} edited, {}", count(self.tensors, "tensor"), bytes(self.result_bytes));
            if self.not_finite > 0 {
                let _ = write!(
                    line,
                    ", {} not finite because an input is not",
                    count(self.not_finite, "element")
                );
            }
            if let Some(digest) = &self.weights_sha256 {
                let _ = write!(line, ", weights {}", digest.get(..8).unwrap_or(digest));
            }
            lines.push(line);
        }
        lines
    }
}

impl OperationReport {
    fn sentence(&self) -> String {
        let Self { index, name, op, tensors, bytes: size, changed, lost, lerp_fallbacks, .. } = self;
        let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let mut line = format!("#{} {op}{name}: ", index + 1);
        if *tensors == 0 {
            return line + "no effect";
        }
        let _ = write!(
            line,
            "{}, {}, {} changed",
            count(*tensors, "tensor"),
            bytes(*size),
            count(*changed, "element")
        );
        if let Some(change) = self.relative_change {
            let _ = write!(line, ", relative change {}", percent(change));
        }
        if *lost > 0 {
            let _ = write!(line, ", {lost} lost to rounding");
        }
        if *lerp_fallbacks > 0 {
            let _ =
                write!(line, ", {} interpolated by lerp instead of slerp", count(*lerp_fallbacks, "tensor"));
        }
        if let Some(error) = self.effective_error {
            let _ = write!(line, ", rounding error {}", percent(error));
        }
        line
    }
}

/// A ratio as a percentage with three significant digits where it has that many.
fn percent(ratio: f64) -> String {
    match ratio * 100.0 {
        tiny if tiny > 0.0 && tiny < 0.0005 => "less than 0.001 %".to_owned(),
        huge if huge > 1e6 => "more than 1000000 %".to_owned(),
        value if value >= 99.95 => format!("{value:.0} %"),
        value if value >= 9.995 => format!("{value:.1} %"),
        value if value >= 0.9995 => format!("{value:.2} %"),
        value => format!("{value:.3} %"),
    }
}
