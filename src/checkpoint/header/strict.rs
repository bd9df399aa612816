//! Reads a header in any form that JSON allows, tensor by tensor, and reports what is wrong. The text is borrowed: a name
//! is copied once, into its [`Key`].

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::error::Category;

use super::super::StoredTensor;
use super::super::json::{Number, Numbers, Skipped, Text};
use super::super::quoted::Quoted;
use super::super::{Dtype, Key};
use super::error::{CONVERT, HeaderError, RESHAPE, TWICE};
use super::validate::{check, dimension};

/// Maximum number of dimensions (that of `NumPy`).
pub(super) const MAX_DIMENSIONS: usize = 64;

pub(super) type Metadata = Option<Vec<(String, String)>>;

/// Reads the tensors in the order of the text, their ranges relative to the data, and `__metadata__`.
pub(super) fn read(text: &str) -> Result<(Vec<StoredTensor>, Metadata), HeaderError> {
    // An entry is rarely shorter than 100 bytes. The guess must not let a small file allocate much memory.
    let mut reader = Reader { tensors: Vec::with_capacity(text.len() / 100), ..Reader::default() };
    let mut json = serde_json::Deserializer::from_str(text);
    let done = json.deserialize_map(&mut reader).and_then(|()| json.end());
    match done {
        Ok(()) => Ok((reader.tensors, reader.metadata)),
        Err(error) => Err(reader.refused(&error)),
    }
}

/// What has been read so far.
#[derive(Default)]
struct Reader {
    tensors: Vec<StoredTensor>,
    metadata: Metadata,
    has_metadata: bool,
    /// Buffers for the shape and the numbers of the current tensor.
    shape: Vec<usize>,
    numbers: Vec<Number>,
    /// Where reading stopped, for an error in the words of the JSON parser.
    stopped: Option<String>,
    /// The error in our own words. The JSON parser's error only ends the parsing.
    refusal: Option<HeaderError>,
}

impl Reader {
    fn refuse<E: Error>(&mut self, refused: impl Into<HeaderError>) -> E {
        self.refusal = Some(refused.into());
        E::custom("refused")
    }

    fn refused(self, error: &serde_json::Error) -> HeaderError {
        match (self.refusal, self.stopped, error.classify()) {
            (Some(refused), ..) => refused,
            (None, Some(place), Category::Data) => format!("{place}: {error}").into(),
            (None, None, Category::Data) => format!("the header is not a JSON object: {error}").into(),
            _ => format!("the header is not JSON: {error}").into(),
        }
    }

    /// Checks a whole entry, whose shape is in `self.shape`.
    fn finish(&mut self, name: &str, entry: &Entry) -> Result<(), String> {
        let shape = entry.has_shape.then_some(&*self.shape);
        let (dtype, range) = check(name, entry.dtype, shape, entry.offsets)?;
        self.tensors.push(StoredTensor { key: Key::from(name), dtype, shape: self.shape.clone(), range });
        Ok(())
    }

    /// Moves the shape from `self.numbers` to `self.shape`.
    fn shape(&mut self, name: &str) -> Result<(), HeaderError> {
        self.shape.clear();
        for number in &self.numbers {
            let entry = number.whole().and_then(dimension).ok_or_else(|| {
                let label = Quoted(name);
                let reason =
                    format!("tensor {label} has a shape entry {number}, which is not an integer below 2^31");
                match number.whole() {
                    Some(_) => HeaderError::new(reason, RESHAPE),
                    None => reason.into(),
                }
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
                    "tensor {} has a data offset {number}, which is not an integer below 2^64",
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

impl<'de> Visitor<'de> for &mut Reader {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Text)? {
            if name == "__metadata__" {
                if std::mem::replace(&mut self.has_metadata, true) {
                    return Err(self.refuse(HeaderError::new("two `__metadata__`".into(), TWICE)));
                }
                let pairs = map.next_value::<Option<Pairs>>();
                let pairs = pairs.inspect_err(|_| self.stopped = Some("`__metadata__`".into()))?;
                if let Some(name) = pairs.as_ref().and_then(Pairs::twice) {
                    let reason = format!("`__metadata__` has two {}", Quoted(name));
                    return Err(self.refuse(HeaderError::new(reason, TWICE)));
                }
                self.metadata = pairs.map(|pairs| pairs.0);
                continue;
            }
            let entry = map.next_value_seed(EntrySeed { reader: self, name: &name });
            let entry = entry.inspect_err(|_| self.stopped = Some(format!("tensor {}", Quoted(&name))))?;
            self.finish(&name, &entry).map_err(|reason| self.refuse(reason))?;
        }
        Ok(())
    }
}

/// The fields of one tensor's entry; its shape is in [`Reader::shape`].
#[derive(Default)]
struct Entry {
    dtype: Option<Dtype>,
    has_shape: bool,
    offsets: Option<(u64, u64)>,
}

struct EntrySeed<'a> {
    reader: &'a mut Reader,
    name: &'a str,
}

impl<'de> DeserializeSeed<'de> for EntrySeed<'_> {
    type Value = Entry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Entry, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EntrySeed<'_> {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let Self { reader, name } = self;
        let mut entry = Entry::default();
        while let Some(field) = map.next_key_seed(Text)? {
            let twice = match &*field {
                "dtype" => {
                    let text = map.next_value_seed(Text)?;
                    let dtype = dtype(&text).ok_or_else(|| {
                        let (label, text) = (Quoted(name), Quoted(&text));
                        let reason =
                            format!("tensor {label} has dtype {text}, which safetensors does not know");
                        reader.refuse(HeaderError::new(reason, CONVERT))
                    })?;
                    entry.dtype.replace(dtype).is_some()
                }
                "shape" => {
                    map.next_value_seed(Numbers { into: &mut reader.numbers, most: MAX_DIMENSIONS })?;
                    reader.shape(name).map_err(|reason| reader.refuse(reason))?;
                    std::mem::replace(&mut entry.has_shape, true)
                }
                "data_offsets" => {
                    map.next_value_seed(Numbers { into: &mut reader.numbers, most: 2 })?;
                    let offsets = reader.offsets(name).map_err(|reason| reader.refuse(reason))?;
                    entry.offsets.replace(offsets).is_some()
                }
                _ => {
                    map.next_value::<Skipped>()?;
                    false
                }
            };
            if twice {
                let reason = format!("tensor {} has two `{field}`", Quoted(name));
                return Err(reader.refuse(HeaderError::new(reason, TWICE)));
            }
        }
        Ok(entry)
    }
}

fn dtype(text: &str) -> Option<Dtype> {
    Dtype::deserialize(StrDeserializer::<serde::de::value::Error>::new(text)).ok()
}

/// `__metadata__`: strings under names, in file order.
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

impl Pairs {
    /// A name that occurs more than once. There are few names.
    pub(super) fn twice(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

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
