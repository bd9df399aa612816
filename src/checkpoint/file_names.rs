//! Names of files in a model directory.

use std::path::Path;

/// The index file of a directory of shards.
pub(crate) const INDEX_FILE: &str = "model.safetensors.index.json";

/// The last component of a path, fit for a message.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
