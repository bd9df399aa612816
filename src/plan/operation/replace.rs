//! `replace`: the donor's bits, under equal shape and dtype; a quantized module is replaced as a whole.

use std::path::PathBuf;

use super::blendable;
use crate::checkpoint::{AffineSet, Dtype, Key, Packing, TensorId, TensorInfo, packing};
use crate::diagnostic::Code;
use crate::plan::action::Action;
use crate::plan::donor::Donor;
use crate::plan::planned_operation::{Context, Faults, PlannedOperation, unusable};
use crate::plan::scope::{Scope, Unit, What, units};
use crate::plan::working_precision::Class;
use crate::surgery::{Matcher, Operation, Spanned, Template};

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    source: &Spanned<PathBuf>,
    source_key: &Spanned<Template>,
    planned: &mut PlannedOperation,
) {
    let mut faults = Faults::default();
    let usable: Vec<Unit> = units(context.facts, scope)
        .into_iter()
        .filter(|unit| !unusable(context, unit, &mut faults) && !headless(unit, &mut faults))
        .collect();
    faults.report(planned, &operation.pattern);
    planned.targets = usable.iter().map(Unit::name).collect();
    let Some((place, donor)) = context.donors.get(source) else { return };
    let mut faults = Faults::default();
    let matcher = Matcher::new(&operation.pattern.value);
    for unit in &usable {
        let name = unit.name();
        let key = context.key(name);
        let Some(captures) = matcher.captures(key) else { continue };
        let theirs = source_key.value.fill(&captures);
        let pairs = match &unit.what {
            What::Set { set, .. } => whole_set(context, donor, set, &theirs, &mut faults),
            What::Plain(_) | What::Incomplete(_) | What::Foreign(_) => {
                single(context, donor, name, &theirs, &mut faults).map(|pair| vec![(name, pair)])
            }
        };
        for (target, (position, key)) in pairs.into_iter().flatten() {
            let donor = planned.uses(place, position, key);
            planned.edit(target, Action::Replace { donor });
        }
    }
    faults.report(planned, source_key);
}

/// Counts a set if only its scales or biases are matched.
fn headless(unit: &Unit, faults: &mut Faults) -> bool {
    let What::Set { set, matched: [false, ..] } = &unit.what else { return false };
    faults.add(
        Code::IncompleteAffineSet,
        "the pattern matches scales or biases of quantized modules without their `.weight`",
        "match the module's `.weight`; `replace` then also copies `.scales` and `.biases`",
        &set.module,
    );
    true
}

type Found<'d> = (TensorId, &'d Key);

/// The donor's tensor for a tensor on its own.
fn single<'d>(
    context: &Context<'_>,
    donor: &'d Donor,
    target: TensorId,
    theirs: &str,
    faults: &mut Faults,
) -> Option<Found<'d>> {
    let Some((position, key, other)) = donor.find(theirs) else {
        blendable::missing(faults, donor, theirs);
        return None;
    };
    same(context, donor, target, (key, other), faults).then_some((position, key))
}

/// The donor's three tensors for an affine set; scales and biases share the stem of the donor's key.
fn whole_set<'d>(
    context: &Context<'_>,
    donor: &'d Donor,
    set: &AffineSet,
    theirs: &str,
    faults: &mut Faults,
) -> Option<Vec<(TensorId, Found<'d>)>> {
    let (stem, suffix) = theirs.rsplit_once('.').unwrap_or((theirs, ""));
    let (codes, scales, biases) = (theirs.to_owned(), format!("{stem}.scales"), format!("{stem}.biases"));
    if matches!(suffix, "scales" | "biases") && donor.find(&format!("{stem}.weight")).is_some() {
        let (base_key, _) = context.entry(set.codes);
        faults.add_detail(
            Code::DtypeMismatch,
            format!("`source_key` names the {suffix} of donor `{}` for a quantized weight", donor.written),
            "name the donor's `.weight` in `source_key`; `replace` then also copies its scales and biases"
                .to_owned(),
            base_key.as_str(),
            theirs,
        );
        return None;
    }
    // A dense donor has no scales: one message says why.
    if let Some((_, _, other)) = donor.find(&codes)
        && Class::of(other.dtype) == Class::Float
    {
        let (base_key, _) = context.entry(set.codes);
        faults.add_detail(
            Code::DtypeMismatch,
            format!("donor `{}` is dense where the base is quantized", donor.written),
            quantize_help(set),
            base_key.as_str(),
            &format!("{} there", other.dtype),
        );
        return None;
    }
    let mut pairs = Vec::with_capacity(3);
    let mut all = true;
    for (target, theirs) in [(set.codes, codes), (set.scales, scales), (set.biases, biases)] {
        match donor.find(&theirs) {
            None => {
                blendable::missing(faults, donor, &theirs);
                all = false;
            }
            Some((position, key, other)) if all => {
                // The first member that differs speaks for the set.
                all = same(context, donor, target, (key, other), faults);
                pairs.push((target, (position, key)));
            }
            Some(_) => {}
        }
    }
    (all && same_format(donor, set, pairs[0].1, faults)).then_some(pairs)
}

/// Counts a difference in dtype or shape.
fn same(
    context: &Context<'_>,
    donor: &Donor,
    target: TensorId,
    (theirs, other): (&Key, &TensorInfo),
    faults: &mut Faults,
) -> bool {
    let (key, info) = context.entry(target);
    let written = &donor.written;
    if Class::of(other.dtype) == Class::Unloadable {
        blendable::unloadable(faults, written, theirs, other.dtype);
        return false;
    }
    if other.dtype != info.dtype {
        let reason = format!("base and donor `{written}` differ in dtype");
        let detail = format!("the base has {}, the donor {}", info.dtype, other.dtype);
        faults.add_detail(Code::DtypeMismatch, reason, dtype_help(key, info, other), key.as_str(), &detail);
        return false;
    }
    if other.shape != info.shape {
        let help = match key.suffix() {
            "scales" | "biases" => "quantize the donor with the base's bits and group size",
            _ if info.dtype == Dtype::U32 => "quantize the donor with the base's bits and group size",
            _ => "use a donor of the same model size",
        };
        let reason = format!("base and donor `{written}` differ in shape");
        let detail = format!("the base has {:?}, the donor {:?}", info.shape, other.shape);
        faults.add_detail(Code::ShapeMismatch, reason, help, key.as_str(), &detail);
        return false;
    }
    true
}

/// Counts sets whose shapes are equal but whose bits and groups differ, as far as the donor's config says.
fn same_format(donor: &Donor, set: &AffineSet, codes: Found<'_>, faults: &mut Faults) -> bool {
    let (Some(config), Some(ours)) = (&donor.config, set.format) else { return true };
    let Packing::Affine(other) = packing(&donor.weights.index, config, codes.0) else { return true };
    let Some(theirs) = other.format.filter(|theirs| *theirs != ours) else { return true };
    faults.add(
        Code::ShapeMismatch,
        format!(
            "donor `{}` is quantized with {} bits in groups of {}, the base with {} bits in groups of {}",
            donor.written, theirs.bits, theirs.group_size, ours.bits, ours.group_size,
        ),
        quantize_help(set),
        &set.module,
    );
    false
}

fn quantize_help(set: &AffineSet) -> String {
    match set.format {
        Some(f) => format!("quantize the donor like the base: {} bits, groups of {}", f.bits, f.group_size),
        None => "quantize the donor like the base".into(),
    }
}

fn dtype_help(key: &Key, info: &TensorInfo, other: &TensorInfo) -> String {
    match (Class::of(info.dtype), other.dtype) {
        (Class::Float, Dtype::U32) => format!("dequantize the donor to {}", info.dtype),
        (Class::Float, _) if matches!(key.suffix(), "scales" | "biases") => {
            format!("convert the donor's scales and biases to {}", info.dtype)
        }
        _ => format!("convert the donor's tensor to {}; `replace` copies bits and never casts", info.dtype),
    }
}
