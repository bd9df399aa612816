//! `tojson`: JSON as Python's `json.dumps` writes it, the format that models were trained on.

use std::fmt::Write;

use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind};
use serde_json::Value;

/// Formatting options.
struct Layout {
    indent: Option<usize>,
    /// The separator between items, and that between a key and its value.
    separators: (String, String),
    sort_keys: bool,
    ensure_ascii: bool,
}

/// The filter: `value | tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
#[expect(clippy::needless_pass_by_value, reason = "the template engine hands keywords over by value")]
pub(super) fn tojson(value: &minijinja::Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let separators = match separators.as_deref() {
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
        Some([item, key]) => (item.clone(), key.clone()),
        Some(_) => return Err(Error::new(ErrorKind::InvalidOperation, "`separators` must be two strings")),
    };
    let layout = Layout {
        indent,
        separators,
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        ensure_ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "cannot convert an undefined value to JSON"));
    }
    let value = serde_json::to_value(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    let mut out = String::new();
    layout.value(&value, 0, &mut out);
    Ok(out)
}

impl Layout {
    fn value(&self, value: &Value, depth: usize, out: &mut String) {
        match value {
            Value::Null => out.push_str("null"),
            Value::Bool(true) => out.push_str("true"),
            Value::Bool(false) => out.push_str("false"),
            Value::Number(number) => out.push_str(&python_number(&number.to_string())),
            Value::String(text) => self.string(text, out),
            Value::Array(items) => {
                self.list(['[', ']'], items.iter(), depth, out, |item, out| self.value(item, depth + 1, out));
            }
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                if self.sort_keys {
                    entries.sort_by_key(|(key, _)| *key);
                }
                self.list(['{', '}'], entries.into_iter(), depth, out, |(key, value), out| {
                    self.string(key, out);
                    out.push_str(&self.separators.1);
                    self.value(value, depth + 1, out);
                });
            }
        }
    }

    fn list<T>(
        &self,
        [open, close]: [char; 2],
        items: impl ExactSizeIterator<Item = T>,
        depth: usize,
        out: &mut String,
        write: impl Fn(T, &mut String),
    ) {
        out.push(open);
        let empty = items.len() == 0;
        for (position, item) in items.enumerate() {
            if position > 0 {
                out.push_str(&self.separators.0);
            }
            self.new_line(depth + 1, out);
            write(item, out);
        }
        if !empty {
            self.new_line(depth, out);
        }
        out.push(close);
    }

    fn new_line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    }

    fn string(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && c > '~') => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        // Writing to a string cannot fail.
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

/// Formats exponents as Python does: `1e-07` instead of `1e-7`.
fn python_number(number: &str) -> String {
    match number.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent.split_at(usize::from(exponent.starts_with(['-', '+'])));
            let sign = if sign.is_empty() { "+" } else { sign };
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => number.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::{Environment, context};

    #[track_caller]
    fn check(filter: &str, expected: &str) {
        let mut environment = Environment::new();
        environment.add_filter("tojson", tojson);
        let value = minijinja::value::Serde(serde_json::json!(
            {"b": [1, 2.5, 1e-7, true, null], "a": {"<é>": "\"\n\u{1}😀", "e": [], "o": {}}}
        ));
        let out = environment.render_str(&format!("{{{{ v | {filter} }}}}"), context! { v => value });
        assert_eq!(out.unwrap(), expected);
    }

    #[test]
    fn json_is_spaced_and_keeps_characters_and_key_order() {
        check(
            "tojson",
            r#"{"b": [1, 2.5, 1e-07, true, null], "a": {"<é>": "\"\n\u0001😀", "e": [], "o": {}}}"#,
        );
    }

    #[test]
    fn options_are_those_of_python() {
        check(
            "tojson(ensure_ascii=true, sort_keys=true, separators=(',', ':'))",
            r#"{"a":{"<\u00e9>":"\"\n\u0001\ud83d\ude00","e":[],"o":{}},"b":[1,2.5,1e-07,true,null]}"#,
        );
        check("tojson(indent=none)|length", "81");
    }

    #[test]
    fn indented_json_has_one_item_per_line() {
        let mut environment = Environment::new();
        environment.add_filter("tojson", tojson);
        let out = environment.render_str("{{ {'a': [1, {}], 'b': 2} | tojson(indent=4) }}", ()).unwrap();
        assert_eq!(out, "{\n    \"a\": [\n        1,\n        {}\n    ],\n    \"b\": 2\n}");
    }
}
