//! The JSON Schema of the file, for editors.
//!
//! It accepts what lowering accepts as far as a schema can say it: the dialect of patterns, the number of wildcards and
//! merge keys are beyond it, and so is the difference between `1` and `1.0`, which to JSON Schema are one number.

use serde_json::{Map, Value, json};

use super::fields::{Field, Op};
use super::{Granularity, values};

const GRANULARITIES: [Granularity; 3] =
    [Granularity::Layer, Granularity::AttentionHead, Granularity::MlpChannel];

/// The schema (draft 2020-12): one alternative for each operation, and for each granularity of `prune`, so that an
/// editor offers the fields that belong together.
#[must_use]
pub fn schema() -> Value {
    let mut operations: Vec<Value> = Vec::new();
    for op in Op::ALL {
        if op == Op::Prune {
            operations.extend(GRANULARITIES.map(|granularity| operation(op, Some(granularity))));
        } else {
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

fn operation(op: Op, granularity: Option<Granularity>) -> Value {
    let mut properties = Map::new();
    let mut required = vec![Field::Op.name(), Field::Pattern.name()];
    properties.insert("op".to_owned(), json!({ "description": summary(op), "const": op.name() }));
    for field in [Field::Name, Field::Pattern, Field::Exclude].into_iter().chain(op.own(granularity)) {
        let mut schema = value(field);
        if let (Field::Granularity, Some(granularity)) = (field, granularity) {
            schema["const"] = values::granularity_name(granularity).into();
        }
        properties.insert(field.name().to_owned(), schema);
    }
    required.extend(op.own(granularity).into_iter().filter(|field| !field.is_optional()).map(Field::name));
    let title = match granularity {
        Some(granularity) => format!("prune: {}", values::granularity_name(granularity)),
        None => op.name().to_owned(),
    };
    json!({
        "title": title,
        "description": summary(op),
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

fn summary(op: Op) -> &'static str {
    match op {
        Op::Scale => {
            "Multiply every matched tensor by a number; quantized weights through their scales and biases"
        }
        Op::Add => "Add a task vector: base + alpha · donor, for tensors of the same key and shape",
        Op::Prune => "Zero layers, attention heads or MLP channels without changing shapes",
        Op::Replace => "Put a donor's tensors in the place of the matched ones",
        Op::Interpolate => "Blend two donors and put the result in the place of the matched tensors",
    }
}

/// The schema of a field's value.
fn value(field: Field) -> Value {
    let pattern = json!({ "type": "string", "minLength": 1 });
    let path = |which: &str| {
        let description = format!(
            "{which}: a safetensors file, a model directory or an index file; relative to this file's directory"
        );
        json!({ "description": description, "type": "string", "minLength": 1 })
    };
    let ids = |what: &str| {
        json!({
            "description": format!("Which {what} to zero: whole numbers, counted from 0"),
            "type": "array",
            "minItems": 1,
            "items": { "type": "integer", "minimum": 0 },
        })
    };
    match field {
        Field::Op => json!({ "type": "string" }),
        Field::Name => json!({
            "description": "A name for plans and logs",
            "type": "string",
            "minLength": 1,
            "pattern": "^[^\\u0000-\\u001F\\u007F-\\u009F]+$",
        }),
        Field::Pattern => json!({
            "description": "Which tensors: a glob over the whole key (* ? [0-3] [!a] {a,b} {0..15}), in quotes",
            "type": "string",
            "minLength": 1,
            "examples": ["model.layers.*.mlp.down_proj.weight"],
        }),
        Field::Exclude => json!({
            "description": "Which of them not: a pattern or a list of patterns",
            "oneOf": [pattern, { "type": "array", "items": pattern }],
        }),
        Field::Factor => json!({ "description": "What to multiply by", "type": "number" }),
        Field::Alpha => json!({ "description": "The donor's weight", "type": "number", "default": 1 }),
        Field::Granularity => json!({ "description": "What the ids count" }),
        Field::LayerIds => ids("layers"),
        Field::HeadIds => ids("query heads"),
        Field::ChannelIds => ids("intermediate channels"),
        Field::Source => path("The donor"),
        Field::SourceA => path("The first donor"),
        Field::SourceB => path("The second donor"),
        Field::SourceKey => json!({
            "description": "The donor's key; its * are filled with what the pattern's * matched, from left to right",
            "type": "string",
            "minLength": 1,
        }),
        Field::Ratio => json!({
            "description": "The weight of source_b: 0 is all of source_a, 1 all of source_b",
            "type": "number",
            "minimum": 0,
            "maximum": 1,
        }),
        Field::Method => json!({
            "description": "lerp: linear; slerp: spherical",
            "enum": ["lerp", "slerp"],
        }),
    }
}
