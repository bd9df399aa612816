//! Warnings and advice about donors that opened, and oddities of any checkpoint.

use std::collections::HashSet;

use super::Donors;
use crate::checkpoint::ReadWarning;
use crate::diagnostic::{Code, Diagnostic, words};
use crate::surgery::{Kind, Operation};

impl Donors {
    /// Warns of donors that another framework wrote than the base.
    pub(in crate::plan) fn formats(&self, base: Option<&str>) -> Vec<Diagnostic> {
        let Some(base) = base else { return Vec::new() };
        self.list
            .iter()
            .zip(&self.first_use)
            .filter_map(|(donor, source)| {
                let format = donor.weights.format.as_deref().filter(|format| *format != base)?;
                let message = format!("the base has format `{base}`, donor `{}` has `{format}`", donor.written);
                let diagnostic = Diagnostic::new(Code::DonorFormat, message).help(
                    "conversions may change values (some norms are stored as w and as 1 + w): convert both alike",
                );
                Some(source.label_at_use(diagnostic, ""))
            })
            .collect()
    }

    /// Advises of donor tensors that no operation uses. Where most of a donor is left and nothing is added from it, a part
    /// was chosen, and the rest need not be named.
    pub(in crate::plan) fn unreached<'r>(
        &self,
        operations: &[Operation],
        reached: impl Iterator<Item = &'r (usize, usize)>,
    ) -> Vec<Diagnostic> {
        let mut used: Vec<Vec<bool>> =
            self.list.iter().map(|donor| vec![false; donor.weights.index.entries().len()]).collect();
        for &(donor, position) in reached {
            used[donor][position] = true;
        }
        let added = operations.iter().filter_map(|operation| match &operation.kind {
            Kind::Add { source, .. } => self.get(source).map(|(place, _)| place),
            _ => None,
        });
        let added: HashSet<usize> = added.collect();
        let donors = self.list.iter().zip(&self.first_use).zip(used).enumerate();
        donors
            .filter_map(|(place, ((donor, source), used))| {
                let all = used.len();
                let entries = donor.weights.index.entries().iter().zip(used);
                let left: Vec<&str> =
                    entries.filter(|(_, used)| !used).map(|((key, _), _)| key.as_str()).collect();
                if left.is_empty() {
                    return None;
                }
                let (message, help) = if left.len() * 2 > all && !added.contains(&place) {
                    let message = format!(
                        "{} of the {all} tensors of donor `{}` {} used",
                        all - left.len(),
                        donor.written,
                        if all - left.len() == 1 { "is" } else { "are" },
                    );
                    (message, "nothing to do, if the others were left out on purpose")
                } else {
                    let message = format!(
                        "{} of donor `{}` {} reached by no pattern: {}",
                        words::count(left.len(), "tensor"),
                        donor.written,
                        if left.len() == 1 { "is" } else { "are" },
                        words::names(&left),
                    );
                    (message, "widen a pattern if they were meant to be used")
                };
                Some(source.label_at_use(Diagnostic::new(Code::UnreachedDonor, message).help(help), ""))
            })
            .collect()
    }
}

/// An oddity of a checkpoint, as a warning.
pub(in crate::plan) fn oddity(warning: &ReadWarning) -> Diagnostic {
    match warning {
        ReadWarning::UnlistedTensor { path, key } => Diagnostic::new(
            Code::UnlistedTensor,
            format!("`{}` holds `{key}`, which the index file does not list", path.display()),
        )
        .help("it is used; list it in the index file, or remove it from the shard"),
        ReadWarning::TrailingBytes { path, bytes } => Diagnostic::new(
            Code::TrailingBytes,
            format!("{} after the last tensor of `{}`", follow(*bytes), path.display()),
        )
        .help("they are ignored; if the file was written twice or joined with another, write it anew"),
    }
}

fn follow(bytes: u64) -> String {
    if bytes == 1 { "1 byte follows".into() } else { format!("{bytes} bytes follow") }
}
