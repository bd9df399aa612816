//! Advice about an `add` whose donor looks like a whole model, where a difference of two was probably meant. Headers alone
//! cannot tell the two apart, so it is advice and no more.

use std::collections::BTreeSet;

use super::donor::Donors;
use super::{Action, Donor, Program, Region};
use crate::checkpoint::{Checkpoint, Origin};
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::{Kind, SurgeryFile};

/// One advice for each donor that is added whole to some tensor, at the first `add` of it.
pub(super) fn advice(
    file: &SurgeryFile,
    base: &Checkpoint,
    donors: &Donors,
    programs: &[Program],
) -> Vec<Diagnostic> {
    let adds = || {
        file.operations.iter().filter_map(|operation| match &operation.kind {
            Kind::Add { source, .. } => Some((source, donors.get(source)?)),
            _ => None,
        })
    };
    let added: BTreeSet<usize> = adds().map(|(_, (place, _))| place).collect();
    let has_all: Vec<bool> = donors
        .list
        .iter()
        .enumerate()
        .map(|(place, donor)| added.contains(&place) && has_all_of(donor, base))
        .collect();
    if !has_all.contains(&true) {
        return Vec::new();
    }
    let mut lonely = BTreeSet::new();
    for program in programs {
        lonely.extend(lonely_in(program, &has_all));
    }
    let mut advice = Vec::new();
    for (source, (place, donor)) in adds() {
        if !(lonely.contains(&place) && is_model(donor, base)) {
            continue;
        }
        lonely.remove(&place);
        let message = format!(
            "donor `{}` looks like a whole model, and is added whole: it has a `config.json` and every tensor of the base",
            donor.written
        );
        let help = "to add what fine-tuning changed, `add` the model that it was tuned from too, with the same alpha below \
                    zero; nothing to do, if the donor holds differences";
        advice.push(source.label_at_use(Diagnostic::new(Code::WholeModel, message).help(help), ""));
    }
    advice
}

/// The donors of whole models that a program adds, unless their shares make a difference (0 in sum) or, with the base's, a
/// mean (1 in sum).
fn lonely_in(program: &Program, has_all: &[bool]) -> Vec<usize> {
    const NEAR: f64 = 1e-3;
    let (mut base, mut whole, mut added) = (1.0, 0.0, Vec::new());
    for (_, action) in &program.actions {
        match action {
            Action::Scale { factor } => {
                base *= factor;
                whole *= factor;
            }
            Action::Add { donor, alpha } if has_all.get(donor.donor) == Some(&true) => {
                whole += alpha;
                added.push(donor.donor);
            }
            Action::Zero { region: Region::Whole } => {
                (base, whole) = (0.0, 0.0);
                added.clear();
            }
            // Of a donor's part there is as much as there was of the base's.
            Action::Replace { .. } | Action::Blend { .. } => {
                (base, whole) = (1.0, 0.0);
                added.clear();
            }
            Action::Add { .. } | Action::Zero { .. } => {}
        }
    }
    let balanced = whole.abs() < NEAR || (base + whole - 1.0).abs() < NEAR;
    if balanced { Vec::new() } else { added }
}

/// Whether a donor has every tensor that the base stores, of the same shape and dtype. Task vectors seldom do: they lack what
/// tuning left alone, or are kept in a wider dtype.
fn has_all_of(donor: &Donor, base: &Checkpoint) -> bool {
    base.weights.index.entries().iter().filter(|(_, info)| matches!(info.origin, Origin::Stored { .. })).all(
        |(key, info)| {
            let found = donor.find(key.as_str());
            found.is_some_and(|(_, _, other)| other.shape == info.shape && other.dtype == info.dtype)
        },
    )
}

/// Whether a configuration stands beside a donor, of a model of the base's type.
fn is_model(donor: &Donor, base: &Checkpoint) -> bool {
    if let Some(config) = &donor.config {
        return config.model_type == base.config.model_type;
    }
    let path = &donor.weights.path;
    // Differences may be kept in the directory of a model, but not under the name of its weights.
    let named = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"model"));
    named && path.is_file() && path.parent().is_some_and(|dir| dir.join("config.json").is_file())
}
