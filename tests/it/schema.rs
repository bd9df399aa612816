//! The JSON Schema says of a file what the program says, as far as a schema can.

use std::fs;
use std::path::{Path, PathBuf};

use mlxcel::internals::surgery;
use mlxcel::{Code, SurgeryFile};
use serde_json::Value;

/// Mistakes that no schema sees: they are in the YAML itself, in the dialect of patterns, or in the model and the donors.
const BEYOND: [Code; 4] = [Code::Syntax, Code::BadGlob, Code::WildcardMismatch, Code::FileUnreadable];

/// Fixtures that the reader of this test reads otherwise: numbers of other versions, decoded bytes, keys that are no text.
const OTHERWISE: [&str; 4] =
    ["bad_value-foreign-number", "unsupported_version-binary", "bad_value-binary", "unknown_field-list"];

#[test]
fn the_schema_accepts_what_the_program_accepts_and_refuses_what_it_refuses() {
    let schema = surgery::schema();
    let mut seen = [0, 0];
    for path in yaml_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")) {
        let file = SurgeryFile::read(&path);
        if file.diagnostics.iter().any(|found| BEYOND.contains(&found.code)) {
            continue;
        }
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        if OTHERWISE.iter().any(|name| folder == *name) {
            continue;
        }
        let Ok(document) = serde_saphyr::from_str::<Value>(&file.source.text) else {
            // Numbers that JSON does not know.
            assert_eq!(file.diagnostics[0].code, Code::NotFinite, "{}", path.display());
            continue;
        };
        let verdict = validate(&schema, &document);
        assert_eq!(verdict.is_ok(), file.diagnostics.is_empty(), "{}: {verdict:?}", path.display());
        seen[usize::from(verdict.is_ok())] += 1;
    }
    assert!(seen.iter().all(|count| *count > 5), "too few fixtures were compared: {seen:?}");
}

#[test]
fn the_schema_sees_mistakes_of_every_kind() {
    let schema = surgery::schema();
    let check = |operation: &str, fine: bool| {
        let text = format!("version: 1\noperations: [{{{operation}}}]");
        let document: Value = serde_saphyr::from_str(&text).expect("YAML");
        let verdict = validate(&schema, &document);
        let file = SurgeryFile::parse(Path::new("x.yaml"), text.as_bytes());
        assert_eq!((verdict.is_ok(), file.diagnostics.is_empty()), (fine, fine), "{operation}: {verdict:?}");
    };
    check("op: scale, pattern: a, factor: 2, name: gain, exclude: [b, c]", true);
    check("op: scale, pattern: a, factor: 2, exclude: b", true);
    check("op: scale, pattern: a, factor: '2'", false);
    check("op: scale, pattern: a", false);
    check("op: scale, pattern: a, factor: 2, alpha: 1", false);
    check("op: scale, pattern: '', factor: 2", false);
    check("op: add, pattern: a, source: d", true);
    check("op: add, pattern: a, source: d, alpha: 0.25", true);
    check("op: add, pattern: a, source: d, alpha: ~", false);
    check("op: prune, pattern: a, granularity: layer, layer_ids: [1, 2]", true);
    check("op: prune, pattern: a, granularity: layer, layer_ids: []", false);
    check("op: prune, pattern: a, granularity: layer, layer_ids: [-1]", false);
    check("op: prune, pattern: a, granularity: layer, head_ids: [1]", false);
    check("op: prune, pattern: a, granularity: attention_head, head_ids: [1]", true);
    check("op: prune, pattern: a, granularity: mlp_channel, channel_ids: [1]", true);
    check("op: prune, pattern: a, granularity: mlp, channel_ids: [1]", false);
    check("op: replace, pattern: a, source: d, source_key: b", true);
    check("op: replace, pattern: a, source: d", false);
    check("op: interpolate, pattern: a, source_a: a, source_b: b, ratio: 1, method: slerp", true);
    check("op: interpolate, pattern: a, source_a: a, source_b: b, ratio: 1.5, method: slerp", false);
    check("op: interpolate, pattern: a, source_a: a, source_b: b, ratio: 1, method: SLERP", false);
    check("op: shrink, pattern: a", false);
}

fn yaml_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files
}

/// The keywords that the schema uses; another one is a failure, so that none is believed to be checked that is not.
fn validate(schema: &Value, value: &Value) -> Result<(), String> {
    let schema = schema.as_object().ok_or("a schema is an object")?;
    for (keyword, wanted) in schema {
        let holds = match keyword.as_str() {
            "$schema" | "title" | "description" | "examples" | "default" | "pattern"
            | "patternProperties" => true,
            "type" => is_type(wanted.as_str().unwrap_or_default(), value),
            "const" => wanted == value,
            "enum" => wanted.as_array().is_some_and(|words| words.contains(value)),
            "minimum" => value.as_f64().is_none_or(|n| n >= wanted.as_f64().unwrap_or(f64::NAN)),
            "maximum" => value.as_f64().is_none_or(|n| n <= wanted.as_f64().unwrap_or(f64::NAN)),
            "minLength" => value
                .as_str()
                .is_none_or(|text| text.chars().count() as u64 >= wanted.as_u64().unwrap_or(u64::MAX)),
            "minItems" => {
                value.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap_or(u64::MAX))
            }
            "required" => wanted
                .as_array()
                .into_iter()
                .flatten()
                .all(|name| value.get(name.as_str().unwrap_or_default()).is_some()),
            "additionalProperties" => value.as_object().into_iter().flatten().all(|(name, _)| {
                schema["properties"].get(name).is_some()
                    || (schema.contains_key("patternProperties") && name.starts_with("x-"))
            }),
            "properties" => {
                for (name, property) in wanted.as_object().into_iter().flatten() {
                    if let Some(value) = value.get(name) {
                        validate(property, value).map_err(|error| format!("{name}: {error}"))?;
                    }
                }
                true
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    validate(wanted, item)?;
                }
                true
            }
            "oneOf" => {
                let schemas = wanted.as_array().into_iter().flatten();
                schemas.filter(|schema| validate(schema, value).is_ok()).count() == 1
            }
            other => return Err(format!("unknown keyword {other}")),
        };
        if !holds {
            return Err(format!("{keyword} {wanted} does not hold for {value}"));
        }
    }
    Ok(())
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        _ => false,
    }
}
