//! Small files for the tests of this module.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The bytes of a file: the given header, and `data` zero bytes.
pub(super) fn raw(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

/// The bytes of a file with these tensors, each of two U8 elements.
pub(super) fn bytes(keys: &[&str]) -> Vec<u8> {
    let entry = |(at, key): (usize, &&str)| {
        ((*key).to_owned(), json!({"dtype": "U8", "shape": [2], "data_offsets": [2 * at, 2 * at + 2]}))
    };
    let header: Map<String, Value> = keys.iter().enumerate().map(entry).collect();
    raw(&Value::Object(header).to_string(), 2 * keys.len())
}

/// A directory of its own, gone after the test.
pub(super) struct Dir(tempfile::TempDir);

impl Dir {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn with(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        fs::write(self.path().join(name), contents).unwrap();
        self
    }

    /// An index file over shards and their tensors.
    pub(super) fn with_index(self, shards: &[(&str, &[&str])]) -> Self {
        let pairs = shards
            .iter()
            .flat_map(|(shard, keys)| keys.iter().map(move |key| ((*key).to_owned(), json!(shard))));
        let map: Map<String, Value> = pairs.collect();
        let text = json!({"metadata": {"total_size": 1}, "weight_map": map}).to_string();
        self.with("model.safetensors.index.json", text)
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}
