//! [`Report`]: what the surgery did to the weights, for people (lines) and for machines (serde).

use serde::Serialize;

use crate::diagnostic::Diagnostic;

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
#[derive(Debug, Clone, Default, Serialize)]
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
    /// ‖after − before‖ / ‖before‖ over all tensors whose earlier values were read.
    pub relative_change: Option<f64>,
    /// ‖rounded − exact‖ / ‖exact‖ over the scales and biases of affine sets that it scaled.
    pub effective_error: Option<f64>,
    /// Scales of affine sets that became subnormal or zero.
    pub underflowed: u64,
}

impl Report {
    /// The report for people, one line an operation and one for the whole.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        todo!()
    }
}
