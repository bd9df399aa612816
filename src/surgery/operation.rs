//! [`Operation`]: what one entry of `operations` means.

use std::path::PathBuf;

use super::{Pattern, Template};
use crate::diagnostic::Span;

/// A value and its place. `alias` is where a YAML alias stood for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it is written.
    pub span: Span,
    /// Where it was used, when it came through an alias.
    pub alias: Option<Span>,
}

/// One operation, typed and validated as far as a file alone allows.
#[derive(Debug)]
pub struct Operation {
    /// Its place in the file's `operations`, from 0 (operations with mistakes count).
    pub index: usize,
    /// `name:`, if given.
    pub name: Option<String>,
    /// Whether nothing is wrong with it. If not, what could not be read has a stand-in that gives rise to no mistake of its
    /// own, so that the others are found; the file has an error then, and no plan.
    pub sound: bool,
    /// The value of `op:`, which stands for the whole operation in labels.
    pub op: Spanned<&'static str>,
    /// 1-based line of that value, or of the alias or merge key that stands for it.
    pub line: usize,
    /// Which keys.
    pub pattern: Spanned<Pattern>,
    /// Which of them not.
    pub exclude: Vec<Spanned<Pattern>>,
    /// What to do with them.
    pub kind: Kind,
}

/// What can be read of an operation that cannot be planned, because too much of it is wrong.
#[derive(Debug)]
pub struct Fragment {
    /// Its pattern: one that matches nothing is a mistake whatever the operation is.
    pub pattern: Option<Spanned<Pattern>>,
    /// Its donors, which must be readable.
    pub sources: Vec<Spanned<PathBuf>>,
}

/// The five operations.
#[derive(Debug)]
pub enum Kind {
    /// x · factor.
    Scale {
        /// Finite.
        factor: Spanned<f64>,
    },
    /// base + alpha · donor, a task vector (Ilharco et al., 2023).
    Add {
        /// The donor, resolved against the file's directory.
        source: Spanned<PathBuf>,
        /// 1 when absent (then its span is that of `op`).
        alpha: Spanned<f64>,
    },
    /// Zero structure, keep shapes.
    Prune {
        /// What the ids count.
        granularity: Spanned<Granularity>,
        /// Not empty; may repeat.
        ids: Spanned<Vec<Spanned<u64>>>,
    },
    /// Take the donor's tensor.
    Replace {
        /// The donor.
        source: Spanned<PathBuf>,
        /// The donor's key, with the pattern's captures.
        source_key: Spanned<Template>,
    },
    /// blend(a, b).
    Interpolate {
        /// First donor.
        source_a: Spanned<PathBuf>,
        /// Second donor.
        source_b: Spanned<PathBuf>,
        /// b's weight, 0 to 1.
        ratio: Spanned<f64>,
        /// How.
        method: Spanned<Method>,
    },
}

/// What `prune` ids count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// Transformer blocks.
    Layer,
    /// Query heads.
    AttentionHead,
    /// Intermediate channels of an MLP.
    MlpChannel,
}

/// How two donors are blended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Linear.
    Lerp,
    /// Spherical (Shoemake, 1985).
    Slerp,
}
