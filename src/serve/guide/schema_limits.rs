//! Size limits of JSON schemas, checked before the library sees them: a schema comes from an untrusted client.

use serde_json::{Map, Value};

use super::error::GuideError;

/// Maximum number of values in a schema, of any type.
const MAX_VALUES: usize = 10_000;
/// Maximum number of entries of an object or a list other than `enum`.
const MAX_ENTRIES: usize = 512;
/// Maximum nesting depth.
const MAX_DEPTH: usize = 64;

/// Rejects a schema that is larger than any realistic one.
pub(super) fn check_size(schema: &Value) -> Result<(), GuideError> {
    let mut stack = vec![(schema, 1, "")];
    let mut values = 0;
    while let Some((value, depth, name)) = stack.pop() {
        values += 1;
        let entries = value.as_array().map_or(0, Vec::len).max(value.as_object().map_or(0, Map::len));
        if values > MAX_VALUES || depth > MAX_DEPTH || (entries > MAX_ENTRIES && name != "enum") {
            return Err(GuideError::TooLarge { values: MAX_VALUES, entries: MAX_ENTRIES, depth: MAX_DEPTH });
        }
        match value {
            Value::Array(list) => stack.extend(list.iter().map(|value| (value, depth + 1, ""))),
            Value::Object(object) => {
                stack.extend(object.iter().map(|(name, value)| (value, depth + 1, name.as_str())));
            }
            _ => {}
        }
    }
    Ok(())
}
