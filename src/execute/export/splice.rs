//! Changes single values in JSON files of other programs. Everything else keeps its text, including numbers beyond any type
//! here and Python's `NaN`.
//!
//! The files have been parsed before. In text that is not JSON nothing is found.

use std::ops::Range;

/// The text of the value at a path of keys.
pub(super) fn find<'t>(text: &'t str, path: &[&str]) -> Option<&'t str> {
    text.get(place(text, path)?)
}

/// Sets a key of the object at a path: replaces its value, or adds it after all others. Returns whether there is such an
/// object.
pub(super) fn set(text: &mut String, path: &[&str], key: &str, value: &str) -> bool {
    let Some(object) = place(text, path).and_then(|range| Object::of(text, range.start)) else {
        return false;
    };
    if let Some((_, old)) = object.members.iter().find(|(name, _)| name == key) {
        text.replace_range(old.clone(), value);
        return true;
    }
    let key = serde_json::Value::from(key);
    let new = match object.members.last() {
        // The new member is indented as the last one is.
        Some((_, last)) => (last.end, format!(",{}{key}: {value}", &text[object.indent])),
        None => (object.begin + 1, format!("{key}: {value}")),
    };
    text.insert_str(new.0, &new.1);
    true
}

/// The range of the value at a path of keys.
fn place(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let begin = after_space(text, text.len() - text.trim_start_matches('\u{feff}').len());
    let mut at = begin..end_of_value(text, begin)?;
    for key in path {
        let members = Object::of(text, at.start)?.members;
        at = members.into_iter().find(|(name, _)| name == key)?.1;
    }
    Some(at)
}

/// The ranges of an object's members.
struct Object {
    /// The offset of its brace.
    begin: usize,
    /// Keys, and the ranges of their values.
    members: Vec<(String, Range<usize>)>,
    /// The space before the last key.
    indent: Range<usize>,
}

impl Object {
    fn of(text: &str, begin: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let mut object = Self { begin, members: Vec::new(), indent: begin..begin };
        let mut at = begin;
        if *bytes.get(at)? != b'{' {
            return None;
        }
        loop {
            // After the brace or a comma.
            let key = after_space(text, at + 1);
            if *bytes.get(key)? == b'}' {
                return Some(object);
            }
            object.indent = at + 1..key;
            let key_end = end_of_value(text, key)?;
            let name = serde_json::from_str(text.get(key..key_end)?).ok()?;
            let colon = after_space(text, key_end);
            let value = after_space(text, colon + 1);
            let end = end_of_value(text, value)?;
            object.members.push((name, value..end));
            at = after_space(text, end);
            match bytes.get(at)? {
                b',' => {}
                b'}' => return Some(object),
                _ => return None,
            }
        }
    }
}

fn after_space(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.find(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')).unwrap_or(rest.len())
}

/// The end of a value: after its last bracket or quote, or before the first byte that is no part of a word or number.
fn end_of_value(text: &str, begin: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = begin;
    loop {
        match bytes.get(at)? {
            b'"' => at = end_of_string(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            _ if depth > 0 => {
                at += 1;
                continue;
            }
            _ => {
                let rest = bytes.get(at..)?;
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                return Some(at + rest.iter().position(ends).unwrap_or(rest.len()));
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

fn end_of_string(bytes: &[u8], quote: usize) -> Option<usize> {
    let mut at = quote + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    #[track_caller]
    fn check(text: &str, path: &[&str], key: &str, value: &str, expected: &str) {
        let mut edited = text.to_owned();
        assert!(set(&mut edited, path, key, value), "{text}");
        assert_eq!(edited, expected);
    }

    #[test]
    fn a_value_takes_the_place_of_the_old_one() {
        check(r#"{"a": 1,"tie":true , "b":2}"#, &[], "tie", "false", r#"{"a": 1,"tie":false , "b":2}"#);
        check(
            r#"{"t":{"x":[{"tie":0}],"tie": null}}"#,
            &["t"],
            "tie",
            "1",
            r#"{"t":{"x":[{"tie":0}],"tie": 1}}"#,
        );
        check(r#"{"a\"}": "{\\", "t\u0069e": 1}"#, &[], "tie", "2", r#"{"a\"}": "{\\", "t\u0069e": 2}"#);
        check("\u{feff}{\n\t\"a\": NaN}\n", &[], "a", "0", "\u{feff}{\n\t\"a\": 0}\n");
    }

    #[test]
    fn a_new_key_stands_behind_the_others_as_they_stand() {
        check(
            "{\n  \"a\": -Infinity,\n  \"b\": 1e999\n}\n",
            &[],
            "c",
            "3",
            "{\n  \"a\": -Infinity,\n  \"b\": 1e999,\n  \"c\": 3\n}\n",
        );
        check(r#"{"a":{}}"#, &["a"], "ü\"", "[]", r#"{"a":{"ü\"": []}}"#);
        check(r#"{"a":[1,{"b":2}]}"#, &[], "b", "{}", r#"{"a":[1,{"b":2}],"b": {}}"#);
        check("{ }", &[], "b", "1", "{\"b\": 1 }");
    }

    #[test]
    fn where_there_is_no_object_nothing_is_set() {
        for text in
            ["", "[]", "1", "{", r#"{"a""#, r#"{"a": 1"#, r#"{"a": [}"#, r#"{"a": "b}"#, "{\"a\": 1,", "\"\\"]
        {
            let mut edited = text.to_owned();
            assert!(!set(&mut edited, &["a"], "b", "1") && !set(&mut edited, &[], "b", "1"), "{text}");
            assert_eq!((edited.as_str(), find(text, &["a", "b"])), (text, None));
        }
        assert_eq!(
            find(r#"{"a": {"b": 123456789012345678901234567890 }}"#, &["a", "b"]),
            Some("123456789012345678901234567890")
        );
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = r#"[ab"\\{}\[\],:ü ]{0,4}"#;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((text, inner), 0..5)
                    .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_set_is_what_a_parser_reads(
            outer in any_value(),
            inner in any_value(),
            key in r#"[ab"\\{}ü]{0,2}"#,
            value in any_value(),
            pretty: bool,
        ) {
            let mut root = serde_json::json!({"first": outer, "path": inner});
            let mut text = if pretty { format!("{root:#}") } else { root.to_string() };
            let set = set(&mut text, &["path"], &key, &value.to_string());
            prop_assert_eq!(set, root["path"].is_object());
            if set {
                let written = value.to_string();
                prop_assert_eq!(find(&text, &["path", &key]), Some(written.as_str()));
                root["path"][key] = value;
            }
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), root);
        }
    }
}
