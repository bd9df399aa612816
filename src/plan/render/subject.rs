//! [`Subject`]: what is edited of each name, so that names with equal subjects can be folded.

use std::collections::HashMap;

use crate::checkpoint::{Dtype, Key, Origin, Packing, packing};
use crate::diagnostic::Look;
use crate::diagnostic::words::count;
use crate::plan::{Edit, Plan, TensorRef};

/// What is edited of a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Subject {
    /// `bf16 [2560]`, or `4 bits, groups of 64` of an affine set.
    form: String,
    /// Which members of an affine set; empty for a tensor.
    members: Vec<&'static str>,
    /// `rows 0–127`; empty when it is the whole tensor.
    region: String,
    /// The module whose bytes a restored head shares.
    tied_to: Option<String>,
}

impl Subject {
    pub(super) fn text(&self, names: usize) -> String {
        let Self { form, members, region, tied_to } = self;
        let tie = tied_to.as_ref().map_or_else(String::new, |to| format!(" (tied to {to})"));
        let Some((last, others)) = members.split_last() else {
            let colon = if region.is_empty() { "" } else { ": " };
            return format!("{}, {form}{colon}{region}{tie}", count(names, "tensor"));
        };
        let of = if region.is_empty() { String::new() } else { format!("{region} of ") };
        format!("{} ({form}): {of}{} and {last}{tie}", count(names, "affine set"), others.join(", "))
    }
}

/// The edits of a step; members of an affine set with the same edit are joined.
pub(super) fn subjects(plan: &Plan, edits: &[Edit], look: Look) -> Vec<(String, Subject)> {
    let index = &plan.base().weights.index;
    let mut places = HashMap::new();
    let mut modules: Vec<(&str, Vec<&Edit>)> = Vec::new();
    for edit in edits {
        let stem = index[edit.target].0.stem();
        let place = *places.entry(stem).or_insert_with(|| {
            modules.push((stem, Vec::new()));
            modules.len() - 1
        });
        modules[place].1.push(edit);
    }
    let mut subjects = Vec::new();
    for (stem, edits) in modules {
        if let Some(subject) = affine(plan, &edits, look) {
            subjects.push((stem.to_owned(), subject));
            continue;
        }
        subjects.extend(edits.iter().map(|edit| {
            let (key, info) = &index[edit.target];
            let (form, region) = (form(info.dtype, &info.shape), edit.action.region().text(look));
            let tied_to = tied_to(&info.origin).map(Key::to_string);
            (key.to_string(), Subject { form, members: Vec::new(), region, tied_to })
        }));
    }
    subjects
}

fn tied_to(origin: &Origin) -> Option<&Key> {
    match origin {
        Origin::Stored { .. } => None,
        Origin::Tied(to) => Some(to),
    }
}

/// The edits of one module as one thing, if they are of an affine set and do the same to several of its members.
fn affine(plan: &Plan, edits: &[&Edit], look: Look) -> Option<Subject> {
    let (first, others) = edits.split_first()?;
    let region = first.action.region().text(look);
    if others.is_empty() || others.iter().any(|edit| edit.action.region().text(look) != region) {
        return None;
    }
    let base = plan.base();
    let Packing::Affine(set) = packing(&base.weights.index, &base.config, first.target) else { return None };
    let members: Vec<&'static str> = [(set.codes, "codes"), (set.scales, "scales"), (set.biases, "biases")]
        .into_iter()
        .filter(|(member, _)| edits.iter().any(|edit| edit.target == *member))
        .map(|(_, name)| name)
        .collect();
    // A linear bias beside the set is no member of it: then every tensor is listed by itself.
    if members.len() != edits.len() {
        return None;
    }
    let form = set.format.map_or_else(
        || "bits unknown".to_owned(),
        |format| format!("{} bits, groups of {}", format.bits, format.group_size),
    );
    let (_, info) = &base.weights.index[first.target];
    let tied_to = tied_to(&info.origin).map(|key| key.stem().to_owned());
    Some(Subject { form, members, region, tied_to })
}

/// Every tensor by itself: dtype, shape and action.
pub(super) fn one_edit(plan: &Plan, edit: &Edit, look: Look) -> (String, String) {
    let (key, info) = &plan.base().weights.index[edit.target];
    let donor = |from: &TensorRef| format!("{} of {}", from.key, plan.donor(from.donor).written);
    let action = edit.action.text(look, donor);
    (key.to_string(), format!("{}  {action}", form(info.dtype, &info.shape)))
}

/// `bf16 [2560, 64]`
fn form(dtype: Dtype, shape: &[usize]) -> String {
    format!("{} {shape:?}", dtype.to_string().to_lowercase())
}
