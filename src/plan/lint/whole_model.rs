//! Notes on an `add` whose donor looks like a whole model, where a difference of two was probably meant. Headers alone
//! cannot tell the two apart, so it is a note and no warning.

use std::collections::BTreeSet;

use crate::checkpoint::{Checkpoint, Origin};
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::action::Share;
use crate::plan::donor::{Donor, Donors};
use crate::plan::ids::DonorId;
use crate::plan::program::Program;
use crate::surgery::{Kind, SurgeryFile};

/// One note for each donor that is added whole to some tensor, at the first `add` of it.
pub(in crate::plan) fn notes(
    file: &SurgeryFile,
    base: &Checkpoint,
    donors: &Donors,
    programs: &[Program],
) -> Vec<Diagnostic> {
    let adds = || {
        file.operations.iter().filter_map(|operation| {
            let Kind::Add { source, .. } = &operation.kind else { return None };
            Some((source, donors.get(source)?))
        })
    };
    let added: BTreeSet<DonorId> = adds().map(|(_, (place, _))| place).collect();
    let has_all: Vec<bool> = donors
        .list
        .iter()
        .enumerate()
        .map(|(place, donor)| added.contains(&DonorId::new(place)) && has_all_of(donor, base))
        .collect();
    if !has_all.contains(&true) {
        return Vec::new();
    }
    let mut unbalanced = BTreeSet::new();
    for program in programs {
        unbalanced.extend(unbalanced_in(program, &has_all));
    }
    let mut notes = Vec::new();
    for (source, (place, donor)) in adds() {
        if !(unbalanced.contains(&place) && is_model(donor, base)) {
            continue;
        }
        unbalanced.remove(&place);
        let message = format!(
            "donor `{}` looks like a whole model rather than a difference: it has a `config.json` and every tensor of the base",
            donor.written
        );
        let help = "to add what fine-tuning changed, also `add` the model that it was tuned from, with the negated alpha; no \
                    change is needed if the donor holds differences";
        notes.push(source.label_at_use(Diagnostic::new(Code::WholeModel, message).help(help), ""));
    }
    notes
}

/// The donors of whole models that a program adds, unless their weights make a difference (sum 0) or, with the base's, a
/// mean (sum 1).
fn unbalanced_in(program: &Program, has_all: &[bool]) -> Vec<DonorId> {
    const TOLERANCE: f64 = 1e-3;
    let (mut base, mut whole, mut added) = (1.0, 0.0, Vec::new());
    for (_, action) in program.actions() {
        match action.share() {
            Share::Multiplied(factor) => {
                base *= factor;
                whole *= factor;
            }
            Share::Added(donor, alpha) => {
                if has_all.get(donor.donor.position()) == Some(&true) {
                    whole += alpha;
                    added.push(donor.donor);
                }
            }
            Share::Cleared => {
                (base, whole) = (0.0, 0.0);
                added.clear();
            }
            // The donors' own values count as the base's did.
            Share::Replaced => {
                (base, whole) = (1.0, 0.0);
                added.clear();
            }
            Share::Kept => {}
        }
    }
    let balanced = whole.abs() < TOLERANCE || (base + whole - 1.0).abs() < TOLERANCE;
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

/// Whether a donor has a configuration beside it, of a model of the base's type.
fn is_model(donor: &Donor, base: &Checkpoint) -> bool {
    if let Some(config) = &donor.config {
        return config.model_type == base.config.model_type;
    }
    let path = &donor.weights.path;
    // Differences may be kept in the directory of a model, but not under the name of its weights.
    let named = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"model"));
    named && path.is_file() && path.parent().is_some_and(|dir| dir.join("config.json").is_file())
}
