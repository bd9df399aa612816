//! Pieces of JSON, read without copying: strings, numbers, lists of numbers.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::quoted::Quoted;

/// A string, borrowed from the text unless it has escapes.
pub(super) struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// A JSON number that is not checked yet.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Whole(u64),
    Negative(i64),
    Fraction(f64),
}

impl Number {
    pub(super) fn whole(self) -> Option<u64> {
        match self {
            Self::Whole(number) => Some(number),
            Self::Negative(_) | Self::Fraction(_) => None,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Negative(number) => number.fmt(f),
            // An integer beyond 64 bits is parsed as a float; 1.8446744073709552e19 would not be recognized.
            Self::Fraction(number) if number.abs() > 1e15 => write!(f, "{number:.0}"),
            Self::Fraction(number) => write!(f, "{number:?}"),
        }
    }
}

struct NumberSeed;

impl<'de> DeserializeSeed<'de> for NumberSeed {
    type Value = Number;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Number, D::Error> {
        deserializer.deserialize_u64(self)
    }
}

impl Visitor<'_> for NumberSeed {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number::Whole(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
        Ok(u64::try_from(number).map_or(Number::Negative(number), Number::Whole))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
        Ok(Number::Fraction(number))
    }
}

/// Reads a list of at most `most` numbers into a buffer.
pub(super) struct Numbers<'a> {
    pub(super) into: &'a mut Vec<Number>,
    pub(super) most: usize,
}

impl<'de> DeserializeSeed<'de> for Numbers<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Numbers<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {} integers", self.most)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.into.clear();
        while let Some(number) = list.next_element_seed(NumberSeed)? {
            if self.into.len() == self.most {
                return Err(A::Error::invalid_length(self.most + 1, &self));
            }
            self.into.push(number);
        }
        Ok(())
    }
}

/// Any value in which no object has a key twice.
pub(super) struct Distinct(pub(super) Value);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DistinctVisitor).map(Self)
    }
}

struct DistinctVisitor;

impl<'de> Visitor<'de> for DistinctVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Distinct(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {} occurs twice", Quoted(&key))));
            }
            let Distinct(value) = map.next_value()?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

/// The text with Python's `NaN`, `Infinity` and `-Infinity`, which JSON does not have, as strings: a value that is not
/// needed does no harm, and one that is needed is not a number.
pub(super) fn without_non_finite(text: &str) -> String {
    const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(['"', 'N', 'I', '-']) {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let length = if let Some(body) = tail.strip_prefix('"') {
            1 + string_end(body)
        } else if let Some(word) = WORDS.iter().find(|word| tail.starts_with(**word)) {
            out.extend(["\"", word, "\""]);
            rest = &tail[word.len()..];
            continue;
        } else {
            1
        };
        let (kept, next) = tail.split_at(length);
        out.push_str(kept);
        rest = next;
    }
    out.push_str(rest);
    out
}

/// Bytes up to the closing quote of a string, included.
fn string_end(body: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    body.len()
}

/// A value that is not needed. Unlike `IgnoredAny` it is parsed: numbers too large for an f64 and deep nesting are refused, as
/// by other readers of these files.
pub(super) struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Skipped {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_twice_is_named_at_any_depth() {
        let read = |text| serde_json::from_str::<Distinct>(text).map(|Distinct(value)| value);
        assert_eq!(read(r#"{"a": [1, {"b": null}], "c": -2.5}"#).unwrap()["a"][1]["b"], Value::Null);
        let error = read(r#"{"a": [{"b": 1, "c": 2, "b": 1}]}"#).unwrap_err().to_string();
        assert!(error.starts_with("the key `b` occurs twice at line 1"), "{error}");
    }

    #[test]
    fn words_of_python_become_strings_outside_of_strings() {
        for (text, expected) in [
            (r#"{"a": NaN, "b": [-Infinity, Infinity]}"#, r#"{"a": "NaN", "b": ["-Infinity", "Infinity"]}"#),
            (r#"{"NaN \" NaN": -1, "I": "Infinity"}"#, r#"{"NaN \" NaN": -1, "I": "Infinity"}"#),
            (r#"{"open: NaN"#, r#"{"open: NaN"#),
        ] {
            assert_eq!(without_non_finite(text), expected);
        }
    }

    #[test]
    fn whole_numbers_beyond_64_bits_are_written_out() {
        let number = |text| serde_json::Deserializer::from_str(text).deserialize_u64(NumberSeed).unwrap();
        assert_eq!(number("18446744073709551616").to_string(), "18446744073709551616");
        assert_eq!(number("16.0").to_string(), "16.0");
    }
}
