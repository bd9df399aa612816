//! [`Operation`]: one entry of `operations`, typed and checked as far as the file alone allows.

use std::path::PathBuf;

use super::language::{Granularity, Method, OpName};
use super::pattern::{Pattern, Template};
use super::spanned::Spanned;

/// One operation.
#[derive(Debug)]
pub struct Operation {
    /// Its place in `operations`, from 0; entries with mistakes count.
    pub index: usize,
    /// `name`, if given.
    pub name: Option<String>,
    /// Whether it has no mistakes. In an operation with mistakes, a neutral value replaces each unreadable one, so that
    /// planning it finds further mistakes and no consequences of known ones; there is no plan then.
    pub sound: bool,
    /// `op`; its span represents the whole operation in labels.
    pub op: Spanned<OpName>,
    /// 1-based line of `op`, or of the alias or merge key that it comes through.
    pub line: usize,
    /// The keys to edit.
    pub pattern: Spanned<Pattern>,
    /// Matched keys to leave alone.
    pub exclude: Vec<Spanned<Pattern>>,
    /// The edit and its parameters.
    pub kind: Kind,
}

/// What is readable of an operation that has too many mistakes to be planned.
#[derive(Debug)]
pub struct Fragment {
    /// Its pattern, which must match something in any operation.
    pub pattern: Option<Spanned<Pattern>>,
    /// Its donors, which must be readable in any operation.
    pub sources: Vec<Spanned<PathBuf>>,
}

/// An edit with its parameters: one variant for each `OpName`.
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
        /// Finite; 1 at the span of `op` if absent.
        alpha: Spanned<f64>,
    },
    /// Zero structure, keep shapes.
    Prune {
        /// What the ids count.
        granularity: Spanned<Granularity>,
        /// Not empty; may repeat.
        ids: Spanned<Vec<Spanned<u64>>>,
    },
    /// The donor's tensor.
    Replace {
        /// The donor.
        source: Spanned<PathBuf>,
        /// The donor's key, with the pattern's captures.
        source_key: Spanned<Template>,
    },
    /// blend(a, b).
    Interpolate {
        /// The first donor.
        source_a: Spanned<PathBuf>,
        /// The second donor.
        source_b: Spanned<PathBuf>,
        /// The weight of the second donor, 0 to 1.
        ratio: Spanned<f64>,
        /// How the donors are blended.
        method: Spanned<Method>,
    },
}

impl Kind {
    /// Whether it takes the tensors that donors have under the base's own keys.
    pub(crate) fn needs_equal_keys(&self) -> bool {
        match self {
            Self::Add { .. } | Self::Interpolate { .. } => true,
            Self::Scale { .. } | Self::Prune { .. } | Self::Replace { .. } => false,
        }
    }

    /// Whether editing w differs from editing 1 + w, which some families use norm weights as.
    pub(crate) fn depends_on_offset(&self) -> bool {
        match self {
            Self::Scale { .. } => true,
            Self::Interpolate { method, .. } => method.value == Method::Slerp,
            // `prune` leaves norms as they are.
            Self::Add { .. } | Self::Prune { .. } | Self::Replace { .. } => false,
        }
    }
}

impl Operation {
    /// Its donors, in the order of its fields.
    pub fn sources(&self) -> impl Iterator<Item = &Spanned<PathBuf>> {
        let (first, second) = match &self.kind {
            Kind::Scale { .. } | Kind::Prune { .. } => (None, None),
            Kind::Add { source, .. } | Kind::Replace { source, .. } => (Some(source), None),
            Kind::Interpolate { source_a, source_b, .. } => (Some(source_a), Some(source_b)),
        };
        first.into_iter().chain(second)
    }
}
