//! From text to [`Node`]s.
//!
//! The parser's options pass repeated fields and numbers such as `.nan` through, so that lowering reports them together
//! with the file's other mistakes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Error, Location, MergeKeyPolicy, NonFiniteFloatPolicy};

use super::merge::merge;
use super::node::{Node, Value};
use crate::diagnostic::Span;

/// Parses a document. An empty one is [`Value::Null`].
///
/// # Errors
/// The parser's own error: the text is not YAML, not a single document, or beyond the limits on memory.
pub(in crate::surgery) fn parse(text: &str) -> Result<Node, Error> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        reject_unsupported_tags: true,
        ignore_binary_tag_for_string: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        strict_booleans: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: 64 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    };
    let mut root: Node = serde_saphyr::from_str_with_options(text, options)?;
    tidy(&mut root, text);
    merge(&mut root, text);
    Ok(root)
}

/// Cuts trailing white space from spans (a block scalar's ends with line breaks), and reads numbers and binary data as
/// YAML 1.2 does.
fn tidy(node: &mut Node, text: &str) {
    if let Some(written) = text.get(node.span.clone()) {
        let written = written.trim_end();
        node.span.end = node.span.start + written.len();
        match node.value {
            // The parser accepts forms of other YAML versions, such as `0b1`.
            Value::Int(_) if !is_integer(written) => node.value = Value::Text(written.to_owned()),
            Value::Text(_) if is_binary(text, node.span.start) => node.value = Value::Binary,
            _ => {}
        }
    }
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| tidy(item, text)),
        Value::Map(pairs) => pairs.iter_mut().for_each(|(key, value)| {
            tidy(key, text);
            tidy(value, text);
        }),
        _ => {}
    }
}

/// Whether a number is an integer of YAML 1.2: decimal, `0x…` or `0o…`.
fn is_integer(written: &str) -> bool {
    let number = written.strip_prefix(['+', '-']).unwrap_or(written);
    let (digits, radix) = match number.split_at_checked(2) {
        Some(("0x", rest)) => (rest, 16),
        Some(("0o", rest)) => (rest, 8),
        _ => (number, 10),
    };
    !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
}

/// Whether a scalar has the tag `!!binary`.
fn is_binary(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default().trim_end_matches([' ', '\t']);
    before.len() < start && before.ends_with("!!binary")
}

/// The span of a location that the parser reports.
fn bytes(location: &Location) -> Span {
    let start = location.span().byte_offset().map_or(0, to_usize);
    start..start + location.span().byte_len().map_or(0, to_usize)
}

fn to_usize(n: impl TryInto<usize>) -> usize {
    n.try_into().unwrap_or(0)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = serde_saphyr::Spanned::<Value>::deserialize(deserializer)?;
        let (span, used) = (bytes(&found.defined), bytes(&found.referenced));
        let alias = (used != span).then_some(used);
        Ok(Self { value: found.value, span, alias })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = entries.next_entry()? {
            pairs.push(pair);
        }
        Ok(Value::Map(pairs))
    }
}
