//! What `add` and `interpolate` require of base and donor: dense floats, the same key, the same shape.

use crate::checkpoint::{Dtype, Key, TensorId};
use crate::diagnostic::Code;
use crate::plan::donor::Donor;
use crate::plan::planned_operation::{Context, Faults, unusable};
use crate::plan::scope::{Scope, What, units};
use crate::plan::suggest;
use crate::plan::working_precision::Class;
use crate::surgery::{OpName, Operation};

/// The matched tensors that arithmetic with a donor is defined for; everything else is counted.
pub(super) fn targets(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    faults: &mut Faults,
) -> Vec<TensorId> {
    let op = operation.op.value;
    let mut targets = Vec::new();
    for unit in units(context.facts, scope) {
        if unusable(context, &unit, faults) {
            continue;
        }
        match &unit.what {
            // Packed codes cannot be edited arithmetically in place.
            What::Plain(Class::Integer) | What::Set { matched: [true, ..], .. } => {
                let (key, info) = context.entry(unit.name());
                let reason = format!("`{op}` cannot edit packed or integer tensors");
                let dtype = info.dtype.to_string();
                faults.add_detail(Code::PackedCodes, reason, alternatives(op), key.as_str(), &dtype);
            }
            What::Set { set, matched: [false, scales, biases] } => {
                targets.extend(scales.then_some(set.scales));
                targets.extend(biases.then_some(set.biases));
            }
            What::Plain(Class::Float) => targets.push(unit.first),
            What::Plain(Class::Unloadable) | What::Incomplete(_) | What::Foreign(_) => {
                unreachable!("such a unit is unusable")
            }
        }
    }
    targets
}

/// The donor's tensor for a target, if it is dense, there, and of the same shape; else the mistake is counted.
pub(super) fn partner<'d>(
    context: &Context<'_>,
    donor: &'d Donor,
    target: TensorId,
    op: OpName,
    faults: &mut Faults,
) -> Option<(TensorId, &'d Key)> {
    let (key, info) = context.entry(target);
    let written = &donor.written;
    let Some((position, theirs, other)) = donor.find(key.as_str()) else {
        missing(faults, donor, key.as_str());
        return None;
    };
    match Class::of(other.dtype) {
        Class::Unloadable => unloadable(faults, written, theirs, other.dtype),
        Class::Integer => faults.add_detail(
            Code::PackedCodes,
            format!("`{op}` cannot use packed or integer tensors of donor `{written}`"),
            if Class::of(info.dtype) == Class::Float && key.suffix() == "weight" {
                "use the donor's floating-point original, or dequantize it with `mlx_lm.convert --dequantize`: the base is \
                 not quantized"
            } else {
                alternatives(op)
            },
            theirs.as_str(),
            &other.dtype.to_string(),
        ),
        Class::Float if other.shape != info.shape => faults.add_detail(
            Code::ShapeMismatch,
            format!("base and donor `{written}` differ in shape"),
            "use a donor of the same model size, narrow the pattern, or `exclude` these keys",
            key.as_str(),
            &format!("the base has {:?}, the donor {:?}", info.shape, other.shape),
        ),
        Class::Float => return Some((position, theirs)),
    }
    None
}

/// Counts a key that a donor lacks. The help is about the first.
pub(super) fn missing(faults: &mut Faults, donor: &Donor, key: &str) {
    let reason = format!("donor `{}` lacks tensors that the operation needs", donor.written);
    faults.add_with(Code::DonorKeyMissing, reason, key, || {
        // A template is filled literally, so these characters can only come from it.
        if key.contains(['{', '[', '?']) {
            return "use a `*` that the pattern captures, or write one operation for each donor key: in `source_key`, braces, \
                    brackets and `?` are literal"
                .to_owned();
        }
        let help = suggest::donor_help(&donor.weights, key);
        let joint = if help.starts_with("the donor") { "" } else { "in this donor: " };
        format!(
            "narrow the pattern, `exclude` these keys, or use a donor that has them; {joint}{help}"
        )
    });
}

/// Counts a donor tensor that MLX cannot load.
pub(super) fn unloadable(faults: &mut Faults, donor: &str, key: &Key, dtype: Dtype) {
    faults.add_detail(
        Code::DonorUnreadable,
        format!("donor `{donor}` has tensors of a dtype that MLX cannot load"),
        "convert the donor's tensors to F32, F16 or BF16",
        key.as_str(),
        &dtype.to_string(),
    );
}

fn alternatives(op: OpName) -> &'static str {
    if op == OpName::Add {
        "use the unquantized base, or dequantize this one with `mlx_lm.convert --dequantize`; or match float tensors such \
         as norms, or `.scales` and `.biases` where the donor has them"
    } else {
        "use unquantized checkpoints for base and donors, or dequantize these with `mlx_lm.convert --dequantize`; or \
         `replace` whole quantized modules, or `exclude` them"
    }
}
