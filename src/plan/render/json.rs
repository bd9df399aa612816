//! A plan as JSON: a stable contract. Fields may be added, never renamed.

use serde_json::{Map, Value, json};

use crate::plan::action::Parameter;
use crate::plan::{Action, Edit, Plan, Region, Step, Summary, TensorRef};

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
    object.insert("index".to_owned(), json!(index.position()));
    if let Some(name) = name {
        object.insert("name".to_owned(), json!(name));
    }
    object.insert("op".to_owned(), json!(op.name()));
    object.insert("line".to_owned(), json!(line));
    object.insert("matched".to_owned(), json!(matched));
    object.insert("skipped".to_owned(), json!(skipped));
    object.insert("edits".to_owned(), edits.into());
    object.into()
}

fn edit(plan: &Plan, edit: &Edit) -> Value {
    let (key, info) = &plan.base().weights.index[edit.target];
    json!({
        "tensor": key.as_str(),
        "dtype": info.dtype,
        "shape": info.shape,
        "action": action(plan, &edit.action),
    })
}

fn action(plan: &Plan, action: &Action) -> Value {
    let donor = |TensorRef { donor, key }: &TensorRef| json!({ "file": plan.donor(*donor).written, "tensor": key.as_str() });
    let mut object = Map::new();
    object.insert("kind".to_owned(), action.kind().into());
    for (name, parameter) in action.parameters() {
        let value = match parameter {
            Parameter::Number(number) => json!(number),
            Parameter::Donor(tensor) => donor(tensor),
            Parameter::Method(method) => method.name().into(),
            Parameter::Region(region) => self::region(region),
        };
        object.insert(name.to_owned(), value);
    }
    object.into()
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
