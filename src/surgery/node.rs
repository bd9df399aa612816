//! The YAML as a spanned tree: every value with its place, before anything is known about what it means.
//!
//! serde-saphyr parses; this module only keeps what it says. Mappings stay lists of pairs, so that repeated fields
//! and numbers like `.nan` reach the lowering, which can name them together with the file's other mistakes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Error, Location, MergeKeyPolicy, NonFiniteFloatPolicy};

use super::Spanned;
use super::merge::merge;
use crate::diagnostic::Span;

/// A value as it is written, its place, and where an alias or a merge key stood for it.
pub(super) type Node = Spanned<Value>;

/// What is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A plain whole number within 64 bits.
    Int(i128),
    /// Any other plain number.
    Float(f64),
    /// A quoted scalar, or a plain one that is nothing else.
    Text(String),
    /// Text that is written as `!!binary`.
    Binary,
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, pairs in file order.
    Map(Vec<(Node, Node)>),
}

/// Parses a document. An empty one is [`Value::Null`].
///
/// # Errors
/// The parser's own error; the text is then not YAML, not one document, or beyond the limits that keep hostile
/// files small in memory.
pub(super) fn parse(text: &str) -> Result<Node, Error> {
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

/// Ends every span with the last sign that shows (a block scalar's has line breaks behind it), and takes numbers and
/// binary data as YAML 1.2 has them.
fn tidy(node: &mut Node, text: &str) {
    if let Some(written) = text.get(node.span.clone()) {
        let written = written.trim_end();
        node.span.end = node.span.start + written.len();
        match node.value {
            // The parser knows forms of other versions and languages, such as `0b1`.
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

/// Whether `!!binary` stands before a scalar.
fn is_binary(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default().trim_end_matches([' ', '\t']);
    before.len() < start && before.ends_with("!!binary")
}

/// The bytes of a location the parser reports.
fn bytes(location: &Location) -> Span {
    let start = location.span().byte_offset().map_or(0, to_usize);
    start..start + location.span().byte_len().map_or(0, to_usize)
}

fn to_usize(n: impl TryInto<usize>) -> usize {
    n.try_into().unwrap_or(0)
}

impl Value {
    /// What the value is, for "expected …, found …".
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::Binary => "binary data",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
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
