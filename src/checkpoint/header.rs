//! [`Header`]: the JSON at the start of a safetensors file, read by a straight descent of refusals.
//!
//! The text is borrowed: a name is copied once, into its [`Key`]. Nothing is believed: sizes are checked against shapes,
//! ranges against each other and against the file.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;

use super::dtype::byte_length;
use super::error::Quoted;
use super::json::{Number, Numbers, Text};
use super::shard::StoredTensor;
use super::{Dtype, Key};

/// More dimensions than any tensor has (`NumPy` has no more either).
const MOST_DIMENSIONS: usize = 64;

/// A checked header.
#[derive(Debug, Default)]
pub struct Header {
    /// Tensors in file order; their ranges are absolute in the file.
    pub tensors: Vec<StoredTensor>,
    /// `__metadata__`, in file order; `None` when absent or null.
    pub metadata: Option<Vec<(String, String)>>,
    /// Bytes between the last tensor and the end of the file.
    pub trailing: u64,
}

impl Header {
    /// Parses the JSON of a header whose data begins at `data_start` in a file of `file_len` bytes.
    ///
    /// # Errors
    /// The first refusal: a lowercase fragment with the tensor and the numbers.
    pub fn parse(text: &str, data_start: u64, file_len: u64) -> Result<Self, String> {
        // A tensor's entry is rarely shorter than this; the guess must not let a small file claim much memory.
        let guess = text.len() / 100;
        let mut descent = Descent {
            tensors: Vec::with_capacity(guess),
            seen: HashSet::with_capacity(guess),
            ..Descent::default()
        };
        let mut json = serde_json::Deserializer::from_str(text);
        let done = json.deserialize_map(&mut descent).and_then(|()| json.end());
        if let Err(error) = done {
            return Err(descent.refused(&error));
        }
        let Descent { mut tensors, metadata, .. } = descent;
        if !tensors.is_sorted_by_key(by_offset) {
            tensors.sort_by_key(by_offset);
        }
        tensors.shrink_to_fit();
        let trailing = place(&mut tensors, data_start, file_len)?;
        Ok(Self { tensors, metadata, trailing })
    }
}

fn by_offset(tensor: &StoredTensor) -> (u64, u64) {
    (tensor.range.start, tensor.range.end)
}

/// Checks that the tensors, sorted by offset, fill the data without overlap or hole, and makes their ranges absolute.
fn place(tensors: &mut [StoredTensor], data_start: u64, file_len: u64) -> Result<u64, String> {
    let available = file_len.saturating_sub(data_start);
    let mut filled = 0;
    let mut before: Option<&StoredTensor> = None;
    for tensor in &*tensors {
        let (start, end) = (tensor.range.start, tensor.range.end);
        let name = Quoted(tensor.key.as_str());
        if start < filled {
            let other = before.map_or("", |other| other.key.as_str());
            let theirs = before.map_or(0..0, |other| other.range.clone());
            return Err(format!(
                "tensor {name} (bytes {start}..{end} of the data) overlaps {} (bytes {}..{})",
                Quoted(other),
                theirs.start,
                theirs.end
            ));
        }
        if start > filled {
            return Err(format!(
                "a hole: bytes {filled}..{start} of the data, before {name}, belong to no tensor"
            ));
        }
        filled = end;
        before = Some(tensor);
    }
    if filled > available {
        let cut = tensors.iter().find(|tensor| tensor.range.end > available);
        let short = filled - available;
        return Err(format!(
            "{short} {} short, interrupted download? the file has {available} bytes of data, and {} takes bytes {}..{}",
            if short == 1 { "byte" } else { "bytes" },
            Quoted(cut.map_or("", |tensor| tensor.key.as_str())),
            cut.map_or(0, |tensor| tensor.range.start),
            cut.map_or(0, |tensor| tensor.range.end),
        ));
    }
    for tensor in tensors {
        // No overflow: every end is at most `available`.
        tensor.range = data_start + tensor.range.start..data_start + tensor.range.end;
    }
    Ok(available - filled)
}

/// What has been read so far.
#[derive(Default)]
struct Descent<'de> {
    tensors: Vec<StoredTensor>,
    seen: HashSet<Cow<'de, str>>,
    metadata: Option<Vec<(String, String)>>,
    has_metadata: bool,
    /// Room for one tensor's shape and offsets, used by all of them.
    shape: Vec<usize>,
    numbers: Vec<Number>,
    /// Where the reading stopped, for an error that is in the JSON reader's words.
    stopped: Option<String>,
    /// Our own words for what is wrong, which the JSON reader's error only carries out.
    refusal: Option<String>,
}

impl Descent<'_> {
    fn refuse<E: Error>(&mut self, reason: String) -> E {
        self.refusal = Some(reason);
        E::custom("refused")
    }

    fn refused(self, error: &serde_json::Error) -> String {
        match (self.refusal, self.stopped, error.classify()) {
            (Some(reason), ..) => reason,
            (None, Some(place), Category::Data) => format!("{place}: {error}"),
            (None, None, Category::Data) => format!("the header is not a JSON object: {error}"),
            _ => format!("the header is not JSON: {error}"),
        }
    }

    /// Checks a whole entry, whose shape is in `self.shape`.
    fn finish(&mut self, name: &str, entry: &Entry) -> Result<(), String> {
        let label = Quoted(name);
        let missing = |field| format!("tensor {label} has no `{field}`");
        let dtype = entry.dtype.ok_or_else(|| missing("dtype"))?;
        if !entry.has_shape {
            return Err(missing("shape"));
        }
        let (start, end) = entry.offsets.ok_or_else(|| missing("data_offsets"))?;
        if end < start {
            return Err(format!("tensor {label} ends (byte {end}) before it begins (byte {start})"));
        }
        let shape = &self.shape;
        let needed = byte_length(dtype, shape).ok_or_else(|| {
            format!("tensor {label}: {dtype} {shape:?} is no whole number of bytes that could be counted")
        })?;
        if end - start != needed {
            let has = end - start;
            return Err(format!(
                "tensor {label} has {has} bytes of data, but {dtype} {shape:?} takes {needed}"
            ));
        }
        self.tensors.push(StoredTensor {
            key: Key::from(name),
            dtype,
            shape: shape.clone(),
            range: start..end,
        });
        Ok(())
    }

    /// Moves the shape from `self.numbers` to `self.shape`.
    fn shape(&mut self, name: &str) -> Result<(), String> {
        self.shape.clear();
        for number in &self.numbers {
            // MLX keeps shapes in i32.
            let entry = number.whole().filter(|&entry| i32::try_from(entry).is_ok());
            let entry = entry.and_then(|entry| usize::try_from(entry).ok()).ok_or_else(|| {
                format!(
                    "tensor {} has a shape entry {number}, which is no whole number below 2^31",
                    Quoted(name)
                )
            })?;
            self.shape.push(entry);
        }
        Ok(())
    }

    /// Takes the offsets from `self.numbers`.
    fn offsets(&self, name: &str) -> Result<(u64, u64), String> {
        let whole = |number: &Number| {
            number.whole().ok_or_else(|| {
                format!(
                    "tensor {} has a data offset {number}, which is no whole number below 2^64",
                    Quoted(name)
                )
            })
        };
        match &*self.numbers {
            [start, end] => Ok((whole(start)?, whole(end)?)),
            other => Err(format!("tensor {} has {} data offsets, not 2", Quoted(name), other.len())),
        }
    }
}

impl<'de> Visitor<'de> for &mut Descent<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Text)? {
            if name == "__metadata__" {
                if std::mem::replace(&mut self.has_metadata, true) {
                    return Err(self.refuse("two `__metadata__`".into()));
                }
                let pairs = map.next_value::<Option<Pairs>>();
                let pairs = pairs.inspect_err(|_| self.stopped = Some("`__metadata__`".into()))?;
                self.metadata = pairs.map(|pairs| pairs.0);
                continue;
            }
            if !self.seen.insert(name.clone()) {
                return Err(self.refuse(format!("two tensors are named {}", Quoted(&name))));
            }
            let entry = map.next_value_seed(EntrySeed { descent: self, name: &name });
            let entry = entry.inspect_err(|_| self.stopped = Some(format!("tensor {}", Quoted(&name))))?;
            self.finish(&name, &entry).map_err(|reason| self.refuse(reason))?;
        }
        Ok(())
    }
}

/// The fields of one tensor's entry; its shape is in [`Descent::shape`].
#[derive(Default)]
struct Entry {
    dtype: Option<Dtype>,
    has_shape: bool,
    offsets: Option<(u64, u64)>,
}

struct EntrySeed<'a, 'de> {
    descent: &'a mut Descent<'de>,
    name: &'a str,
}

impl<'de> DeserializeSeed<'de> for EntrySeed<'_, 'de> {
    type Value = Entry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Entry, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EntrySeed<'_, 'de> {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let Self { descent, name } = self;
        let mut entry = Entry::default();
        while let Some(field) = map.next_key_seed(Text)? {
            let twice = match &*field {
                "dtype" => {
                    let text = map.next_value_seed(Text)?;
                    let dtype = dtype(&text).ok_or_else(|| {
                        let (label, text) = (Quoted(name), Quoted(&text));
                        descent.refuse(format!(
                            "tensor {label} has dtype {text}, which safetensors does not know"
                        ))
                    })?;
                    entry.dtype.replace(dtype).is_some()
                }
                "shape" => {
                    map.next_value_seed(Numbers { into: &mut descent.numbers, most: MOST_DIMENSIONS })?;
                    descent.shape(name).map_err(|reason| descent.refuse(reason))?;
                    std::mem::replace(&mut entry.has_shape, true)
                }
                "data_offsets" => {
                    map.next_value_seed(Numbers { into: &mut descent.numbers, most: 2 })?;
                    let offsets = descent.offsets(name).map_err(|reason| descent.refuse(reason))?;
                    entry.offsets.replace(offsets).is_some()
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    false
                }
            };
            if twice {
                return Err(descent.refuse(format!("tensor {} has two `{field}`", Quoted(name))));
            }
        }
        Ok(entry)
    }
}

fn dtype(text: &str) -> Option<Dtype> {
    Dtype::deserialize(StrDeserializer::<serde::de::value::Error>::new(text)).ok()
}

/// `__metadata__`: strings under names, in file order.
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor).map(Self)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        std::iter::from_fn(|| map.next_entry::<String, String>().transpose()).collect()
    }
}

#[cfg(test)]
mod tests;
