//! The JSON Schema of the file, for editors.
//!
//! It accepts what lowering accepts, as far as a schema can express that. It cannot express the dialect of patterns, the
//! number of wildcards, merge keys, or the difference between `1` and `1.0`, which are one number in JSON Schema.

use serde_json::{Map, Value, json};

use super::language::{Field, Granularity, Method, OpName, ValueKind};

/// The schema (draft 2020-12): one alternative for each operation, and for each granularity of `prune`, so that editors
/// offer the fields that belong together.
#[must_use]
pub fn schema() -> Value {
    let mut operations: Vec<Value> = Vec::new();
    for op in OpName::all() {
        let granularities = op.spec().ids.iter().map(|(granularity, _)| operation(op, Some(*granularity)));
        operations.extend(granularities);
        if op.spec().ids.is_empty() {
            operations.push(operation(op, None));
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mlxcel surgery file",
        "description": "Weight operations that are applied, in order, while a checkpoint loads",
        "type": "object",
        "required": ["version", "operations"],
        "additionalProperties": false,
        "patternProperties": { "^x-": { "description": "Ignored: a place for anchors" } },
        "properties": {
            "version": { "description": "The version of this format: 1, without quotes or a decimal point", "type": "integer", "const": 1 },
            "operations": {
                "description": "The operations, in order; an empty list changes nothing",
                "type": "array",
                "items": { "oneOf": operations },
            },
        },
    })
}

fn operation(op: OpName, granularity: Option<Granularity>) -> Value {
    let summary = op.spec().summary;
    let mut properties = Map::new();
    let mut required = vec![Field::Op.name(), Field::Pattern.name()];
    properties.insert(Field::Op.name().to_owned(), json!({ "description": summary, "const": op.name() }));
    let common = [Field::Name, Field::Pattern, Field::Exclude];
    for field in common.into_iter().chain(op.own_fields(granularity)) {
        let mut schema = value(field);
        if let (Field::Granularity, Some(granularity)) = (field, granularity) {
            schema["const"] = granularity.name().into();
        }
        properties.insert(field.name().to_owned(), schema);
    }
    required.extend(op.own_fields(granularity).filter(|field| !field.spec().optional).map(Field::name));
    let title = match granularity {
        Some(granularity) => format!("{op}: {granularity}"),
        None => op.name().to_owned(),
    };
    json!({
        "title": title,
        "description": summary,
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

/// The schema of a field's value.
fn value(field: Field) -> Value {
    let description = field.spec().description;
    let pattern = json!({ "type": "string", "minLength": 1 });
    let mut schema = match field.spec().value {
        ValueKind::OpName => json!({ "type": "string" }),
        ValueKind::Line => {
            json!({ "type": "string", "minLength": 1, "pattern": "^[^\\u0000-\\u001F\\u007F-\\u009F]+$" })
        }
        ValueKind::Pattern => json!({
            "type": "string",
            "minLength": 1,
            "examples": ["model.layers.*.mlp.down_proj.weight"],
        }),
        ValueKind::Patterns => json!({ "oneOf": [pattern, { "type": "array", "items": pattern }] }),
        ValueKind::Number => json!({ "type": "number" }),
        ValueKind::Ratio => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        ValueKind::Granularity => json!({}),
        ValueKind::Method => json!({ "enum": Method::ALL.map(Method::name) }),
        ValueKind::Ids => {
            json!({ "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 } })
        }
        ValueKind::Donor | ValueKind::DonorKey => json!({ "type": "string", "minLength": 1 }),
    };
    schema["description"] = match field.spec().value {
        ValueKind::Donor => format!(
            "{description}: a safetensors file, a model directory or an index file; relative to this file's directory"
        ),
        _ => description.to_owned(),
    }
    .into();
    if field == Field::Alpha {
        schema["default"] = 1.into();
    }
    schema
}
