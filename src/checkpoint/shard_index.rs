//! [`Listing`]: an index file (`model.safetensors.index.json`), which maps tensors to shards.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::error::Category;

use super::file::read_text;
use super::json::{Skipped, Text};
use super::quoted::Quoted;
use super::{ReadError, ReadErrorKind};

/// Maximum size of an index file in bytes. A tensor takes about 100 bytes.
const MAX_BYTES: u64 = 100_000_000;

/// Maximum number of tensors in an index file. The largest mixtures have a quarter of a million.
const MAX_TENSORS: usize = 1_000_000;

const NO_MAP: &str = "has no `weight_map`";

const HELP: &str = "download or write the index file again; it must be {\"weight_map\": {tensor: file, …}}";

/// The `weight_map` of an index file; names of tensors are borrowed from its text.
#[derive(Debug, Default)]
pub struct Listing<'t> {
    /// Names of the shards, in order.
    pub shards: Vec<String>,
    /// Tensors in the order of the file, each with the position of its shard.
    pub tensors: Vec<(Cow<'t, str>, usize)>,
}

impl<'t> Listing<'t> {
    /// Parses the text of an index file.
    ///
    /// # Errors
    /// A lowercase fragment: not JSON, no `weight_map`, not names, or names outside the directory.
    pub fn parse(text: &'t str) -> Result<Self, String> {
        let file: IndexFile<'_> = serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Data => format!("not an index file: {error}"),
            _ => format!("not JSON: {error}"),
        })?;
        let Some(WeightMap { names, mut tensors }) = file.weight_map else {
            return Err(NO_MAP.into());
        };
        names.iter().try_for_each(|name| plain(name))?;
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_unstable_by_key(|&at| &names[at]);
        let mut place = vec![0; names.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        let shards = order.iter().map(|&at| names[at].clone().into_owned()).collect();
        for (_, at) in &mut tensors {
            *at = place[*at];
        }
        Ok(Self { shards, tensors })
    }

    /// Parses the text of the file at `path`.
    pub(super) fn of(path: &Path, text: &'t str) -> Result<Self, ReadError> {
        Self::parse(text).map_err(|reason| {
            if !path.to_string_lossy().ends_with(".index.json") && reason == NO_MAP {
                return not_an_index(path, text);
            }
            ReadError::bad_index(path, reason).help(HELP)
        })
    }
}

/// The error for a JSON file that is not an index file.
fn not_an_index(path: &Path, text: &str) -> ReadError {
    let is_config = ["\"model_type\"", "\"architectures\""].iter().any(|field| text.contains(field));
    let what = if is_config { "the configuration of a model" } else { "a JSON file, not an index file" };
    ReadError::unreadable(path, format!("{what}: it holds no weights and names none"))
        .help("name the directory, the `.safetensors` file itself, or the `.index.json` of its shards")
}

/// The text of an index file.
pub(super) fn read(path: &Path) -> Result<String, ReadError> {
    read_text(path, MAX_BYTES).map_err(|error| match error.kind {
        ReadErrorKind::Unreadable | ReadErrorKind::Forbidden => {
            ReadError { kind: ReadErrorKind::BadIndex, ..error }
        }
        _ => error,
    })
}

/// Accepts only files beside the index: an index from an untrusted source must not lead elsewhere.
fn plain(name: &str) -> Result<(), String> {
    if name.contains(['/', '\\', '\0']) || matches!(name, "" | "." | "..") {
        return Err(format!("names the shard {}, which is not a plain file name", Quoted(name)));
    }
    if !name.ends_with(".safetensors") {
        return Err(format!("names the shard {}, which is not a `.safetensors` file", Quoted(name)));
    }
    Ok(())
}

/// The fields of an index file that are used.
struct IndexFile<'de> {
    weight_map: Option<WeightMap<'de>>,
}

/// The file names in order of appearance, and the tensors, each with the position of its file name.
struct WeightMap<'de> {
    names: Vec<Cow<'de, str>>,
    tensors: Vec<(Cow<'de, str>, usize)>,
}

impl<'de> Deserialize<'de> for IndexFile<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(IndexVisitor)
    }
}

struct IndexVisitor;

impl<'de> Visitor<'de> for IndexVisitor {
    type Value = IndexFile<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `weight_map`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut weight_map = None;
        while let Some(field) = map.next_key_seed(Text)? {
            if field == "weight_map" {
                if weight_map.is_some() {
                    return Err(A::Error::custom("`weight_map` occurs twice"));
                }
                weight_map = map.next_value::<Option<WeightMap<'de>>>()?;
            } else {
                map.next_value::<Skipped>()?;
            }
        }
        Ok(IndexFile { weight_map })
    }
}

impl<'de> Deserialize<'de> for WeightMap<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(WeightMapVisitor)
    }
}

struct WeightMapVisitor;

impl<'de> Visitor<'de> for WeightMapVisitor {
    type Value = WeightMap<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`weight_map` (an object of file names under tensor names)")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut names: Vec<Cow<'de, str>> = Vec::new();
        let mut places: HashMap<Cow<'de, str>, usize> = HashMap::new();
        let mut tensors = Vec::new();
        let mut last = 0;
        while let Some(key) = map.next_key_seed(Text)? {
            let name = map.next_value_seed(Text)?;
            // Consecutive tensors are often in the same file.
            if names.get(last) != Some(&name) {
                last = *places.entry(name.clone()).or_insert_with(|| {
                    names.push(name);
                    names.len() - 1
                });
            }
            if tensors.len() == MAX_TENSORS {
                return Err(A::Error::custom(format_args!("it lists more than {MAX_TENSORS} tensors")));
            }
            tensors.push((key, last));
        }
        Ok(WeightMap { names, tensors })
    }
}
