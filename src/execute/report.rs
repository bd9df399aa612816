//! [`Report`]: what the surgery did to the weights, for people (lines) and for machines (serde).

use std::fmt::Write as _;

use serde::Serialize;

use super::error::Place;
use super::job::Job;
use super::kernel::{Counters, Outcome};
use crate::diagnostic::{Code, Diagnostic, bytes};
use crate::plan::{Plan, Program};

/// What was done, in figures.
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
    /// Elements of the results that are not finite because an input was not.
    pub not_finite: u64,
    /// SHA-256 over the edited tensors' bytes in key order, in hex; `None` when nothing was edited or nobody counted.
    pub weights_sha256: Option<String>,
    /// One entry an operation of the file, in file order; those without any effect included.
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
    /// Elements whose stored bits differ after it (all of a tensor that it overwrites unread).
    pub changed: u64,
    /// Elements that it should have changed.
    pub deltas: u64,
    /// Elements whose change was not 0 and yet vanished in rounding to the tensor's dtype.
    pub lost: u64,
    /// SLERPs of (nearly) parallel, zero or non-finite tensors, done as LERP.
    pub lerp_fallbacks: u64,
    /// ‖after − before‖ / ‖before‖ over all tensors whose earlier values were read; `None` if there are none, or they
    /// are 0 or not finite.
    pub relative_change: Option<f64>,
    /// ‖rounded − exact‖ / ‖exact‖ over the scales and biases of affine sets that it scaled.
    pub effective_error: Option<f64>,
    /// Scales of affine sets that became subnormal or zero.
    pub underflowed: u64,
}

/// A report in the making.
#[derive(Debug)]
pub(super) struct Ledger {
    report: Report,
    /// One for each operation.
    tallies: Vec<Counters>,
}

impl Ledger {
    pub(super) fn new(plan: &Plan) -> Self {
        let operations = plan.steps().iter().map(|step| OperationReport {
            index: step.index,
            name: step.name.clone(),
            op: step.op,
            line: step.line,
            ..OperationReport::default()
        });
        let report = Report { operations: operations.collect(), ..Report::default() };
        Self { tallies: vec![Counters::default(); plan.steps().len()], report }
    }

    /// Enters one edited tensor.
    pub(super) fn enter(&mut self, program: &Program, job: &Job<'_>, outcome: &Outcome) {
        let bytes = program.result_bytes();
        self.report.tensors += 1;
        self.report.base_bytes += job.base_bytes;
        self.report.donor_bytes += job.donor_bytes;
        self.report.result_bytes += bytes;
        self.report.not_finite += outcome.passed;
        let elements = job.recipe.elements() as u64;
        let whole = Counters { changed: elements, deltas: elements, ..Counters::default() };
        let start = job.start_of.map(|step| (step, &whole));
        let mut acted = Vec::new();
        for (step, tally) in start.into_iter().chain(job.step_of.iter().copied().zip(&outcome.steps)) {
            self.tallies[step].add(tally);
            if !acted.contains(&step) {
                acted.push(step);
            }
        }
        for step in acted {
            self.report.operations[step].tensors += 1;
            self.report.operations[step].bytes += bytes;
        }
        if let (Some(step), true) = (job.start_of, job.fell_back) {
            self.report.operations[step].lerp_fallbacks += 1;
        }
    }

    /// Sums up.
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
            .help("the changes are smaller than half a unit of the base's dtype: use a larger factor or alpha, or a base of a wider dtype")
    });
    let underflow = (*underflowed * 100 > scales).then(|| {
        let message = format!("{place}: {underflowed} of {scales} scales became subnormal or zero");
        Diagnostic::new(Code::Underflow, message)
            .help("weights of those groups lose their precision: use a larger factor, or an unquantized base")
    });
    lost_deltas.into_iter().chain(underflow)
}

impl Report {
    /// The report for people, one line an operation and one for the whole.
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
        let mut line = format!("{} {op}{name}: ", index + 1);
        if *tensors == 0 {
            return line + "nothing to do";
        }
        let _ = write!(
            line,
            "{}, {}, {} changed",
            count(*tensors, "tensor"),
            bytes(*size),
            count(*changed, "element")
        );
        if let Some(change) = self.relative_change {
            let _ = write!(line, ", by {}", percent(change));
        }
        if *lost > 0 {
            let _ = write!(line, ", {lost} lost to rounding");
        }
        if *lerp_fallbacks > 0 {
            let _ = write!(line, ", {} mixed by lerp", count(*lerp_fallbacks, "tensor"));
        }
        if let Some(error) = self.effective_error {
            let _ = write!(line, ", rounding error {}", percent(error));
        }
        line
    }
}

/// A share of one, of any size, in few digits.
fn percent(ratio: f64) -> String {
    match ratio * 100.0 {
        tiny if tiny > 0.0 && tiny < 0.0005 => "less than 0.001 %".to_owned(),
        huge if huge > 1e6 => "more than 1000000 %".to_owned(),
        value => format!("{value:.3} %"),
    }
}

fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
