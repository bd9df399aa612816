//! The plan for machines: a stable contract; fields may be added, never renamed.

use serde_json::{Map, Value, json};

use super::{Action, Edit, Plan, Region, Step, Summary, TensorRef};

/// The version of every JSON document that mlxcel prints.
pub const FORMAT_VERSION: &str = "1.0";

/// `digest`, `operations` and `summary` of a plan.
#[must_use]
pub fn json(plan: &Plan) -> Map<String, Value> {
    let operations: Vec<Value> = plan.steps().iter().map(|step| operation(plan, step)).collect();
    let mut object = Map::new();
    object.insert("digest".to_owned(), plan.digest().into());
    object.insert("operations".to_owned(), operations.into());
    object.insert("summary".to_owned(), summary(plan.summary()));
    object
}

fn operation(plan: &Plan, step: &Step) -> Value {
    let Step { index, name, op, line, matched, skipped, restored: _, edits } = step;
    let edits: Vec<Value> = edits.iter().map(|one| edit(plan, one)).collect();
    let mut object = Map::new();
    object.insert("index".to_owned(), json!(index));
    if let Some(name) = name {
        object.insert("name".to_owned(), json!(name));
    }
    object.insert("op".to_owned(), json!(op));
    object.insert("line".to_owned(), json!(line));
    object.insert("matched".to_owned(), json!(matched));
    object.insert("skipped".to_owned(), json!(skipped));
    object.insert("edits".to_owned(), edits.into());
    object.into()
}

fn edit(plan: &Plan, edit: &Edit) -> Value {
    let (key, info) = &plan.base().weights.index.entries()[edit.target];
    json!({
        "tensor": key.as_str(),
        "dtype": info.dtype,
        "shape": info.shape,
        "action": action(plan, &edit.action),
    })
}

fn action(plan: &Plan, action: &Action) -> Value {
    let donor = |TensorRef { donor, key }: &TensorRef| json!({ "file": plan.donors()[*donor].written, "tensor": key.as_str() });
    match action {
        Action::Scale { factor } => json!({ "kind": "scale", "factor": factor }),
        Action::Add { donor: from, alpha } => json!({ "kind": "add", "alpha": alpha, "donor": donor(from) }),
        Action::Zero { region } => json!({ "kind": "zero", "region": self::region(region) }),
        Action::Replace { donor: from } => json!({ "kind": "replace", "donor": donor(from) }),
        Action::Blend { a, b, ratio, method } => json!({
            "kind": "blend",
            "ratio": ratio,
            "method": method.name(),
            "a": donor(a),
            "b": donor(b),
        }),
    }
}

fn region(region: &Region) -> Value {
    match region {
        Region::Whole => json!("whole"),
        Region::Slices { axis, ranges } => {
            let ranges: Vec<[usize; 2]> = ranges.iter().map(|range| [range.start, range.end]).collect();
            json!({ "axis": axis, "ranges": ranges })
        }
    }
}

fn summary(summary: &Summary) -> Value {
    let Summary { operations, tensors_edited, base_bytes, donor_bytes, result_bytes, peak_extra_bytes } =
        summary;
    json!({
        "operations": operations,
        "tensors_edited": tensors_edited,
        "base_bytes": base_bytes,
        "donor_bytes": donor_bytes,
        "result_bytes": result_bytes,
        "peak_extra_bytes": peak_extra_bytes,
    })
}
