//! What `add` and `interpolate` ask of base and donor alike: dense floats, the same key, the same shape.

use super::donor::Donor;
use super::draft::{Context, Tally, unusable};
use super::near;
use super::number::Class;
use super::scope::{Scope, What, units};
use crate::checkpoint::{Dtype, Key};
use crate::diagnostic::Code;
use crate::surgery::{OpName, Operation};

/// The matched tensors that arithmetic with a donor is defined for; everything else is counted.
pub(super) fn targets(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    tally: &mut Tally,
) -> Vec<usize> {
    let op = operation.op.value;
    let mut targets = Vec::new();
    for unit in units(context.facts, scope) {
        if unusable(context, &unit, tally) {
            continue;
        }
        match &unit.what {
            // Of a set whose codes are asked for, what they stand for cannot be computed with in place.
            What::Plain(Class::Integer) | What::Set { matched: [true, ..], .. } => {
                let (key, info) = context.entry(unit.name());
                let reason = format!("`{op}` cannot compute with packed or integer tensors");
                let dtype = info.dtype.to_string();
                tally.add_detail(Code::PackedCodes, reason, way_out(op), key.as_str(), &dtype);
            }
            What::Set { set, matched: [false, scales, biases] } => {
                targets.extend(scales.then_some(set.scales));
                targets.extend(biases.then_some(set.biases));
            }
            _ => targets.push(unit.first),
        }
    }
    targets
}

/// The donor's tensor for a target, if it is dense, there, and of the same shape; else the mistake is counted.
pub(super) fn partner<'d>(
    context: &Context<'_>,
    donor: &'d Donor,
    target: usize,
    op: OpName,
    tally: &mut Tally,
) -> Option<(usize, &'d Key)> {
    let (key, info) = context.entry(target);
    let written = &donor.written;
    let Some((position, theirs, other)) = donor.find(key.as_str()) else {
        missing(tally, donor, key.as_str());
        return None;
    };
    match Class::of(other.dtype) {
        Class::Unloadable => unloadable(tally, written, theirs, other.dtype),
        Class::Integer => tally.add_detail(
            Code::PackedCodes,
            format!("`{op}` cannot compute with packed or integer tensors of donor `{written}`"),
            if Class::of(info.dtype) == Class::Float && key.suffix() == "weight" {
                "the donor is quantized and the base is not: take the donor's floating-point original, or what \
                 `mlx_lm.convert --dequantize` makes of it"
            } else {
                way_out(op)
            },
            theirs.as_str(),
            &other.dtype.to_string(),
        ),
        Class::Float if other.shape != info.shape => tally.add_detail(
            Code::ShapeMismatch,
            format!("base and donor `{written}` differ in shape"),
            "the donor must come from a model of the same sizes; narrow the pattern or `exclude` these keys",
            key.as_str(),
            &format!("{:?} here, {:?} there", info.shape, other.shape),
        ),
        Class::Float => return Some((position, theirs)),
    }
    None
}

/// Counts a key that a donor lacks. The help speaks of the first.
pub(super) fn missing(tally: &mut Tally, donor: &Donor, key: &str) {
    let reason = format!("donor `{}` lacks tensors that the operation needs", donor.written);
    tally.add_with(Code::DonorKeyMissing, reason, key, || {
        // A template is filled letter by letter, so these signs can only come from there.
        if key.contains(['{', '[', '?']) {
            return "in `source_key` only `*` is special: braces, brackets and `?` stand for themselves; let a `*` of the \
                    pattern fill the place, or write one operation for each donor key"
                .to_owned();
        }
        let help = near::donor_help(&donor.weights, key);
        let joint = if help.starts_with("the donor") { "" } else { "in this donor: " };
        format!(
            "narrow the pattern or `exclude` these keys, or take a donor that has them; {joint}{help}"
        )
    });
}

/// Counts a donor tensor that MLX cannot load.
pub(super) fn unloadable(tally: &mut Tally, donor: &str, key: &Key, dtype: Dtype) {
    tally.add_detail(
        Code::DonorUnreadable,
        format!("donor `{donor}` has tensors of a dtype that MLX cannot load"),
        "convert the donor's tensors to F32, F16 or BF16",
        key.as_str(),
        &dtype.to_string(),
    );
}

fn way_out(op: OpName) -> &'static str {
    if op == OpName::Add {
        "use a floating-point base: the unquantized original, or what `mlx_lm.convert --dequantize` makes of this one; \
         or target float tensors such as norms, or `.scales` and `.biases` where the donor has them"
    } else {
        "use floating-point checkpoints for base and donors: the unquantized originals, or what \
         `mlx_lm.convert --dequantize` makes of these; or `replace` whole quantized modules, or `exclude` them to leave \
         them alone"
    }
}
