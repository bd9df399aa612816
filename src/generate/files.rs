//! Reads the files beside the weights, and texts, with size limits.

use std::io::{ErrorKind, Read};
use std::path::Path;

use serde_json::{Map, Value};

use super::error::Error;
use crate::checkpoint::open_regular;
use crate::diagnostic::system;

/// Maximum size of a prompt or text in bytes, many times what any model's context holds.
pub(crate) const MAX_TEXT_BYTES: u64 = 16 << 20;

/// Reads a prompt or text.
///
/// # Errors
/// When it is not a regular file, larger than [`MAX_TEXT_BYTES`], or not UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let Some(bytes) = read_bounded(path, MAX_TEXT_BYTES)? else {
        return Err(Error::file(path, "does not exist"));
    };
    String::from_utf8(bytes).map_err(|_| Error::file(path, "is not UTF-8 text"))
}

/// Reads a regular file of at most `limit` bytes; `None` if it does not exist.
pub(super) fn read_bounded(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(meta) if meta.is_symlink() && !path.try_exists().unwrap_or(true) => {
            return Err(Error::file(path, "is a symbolic link to a file that does not exist"));
        }
        _ => {}
    }
    let (file, _) = open_regular(path).map_err(|error| {
        let is_noun = ["a directory, not a file", "not a regular file"].contains(&&*error.reason);
        let reason = if is_noun { format!("is {}", error.reason) } else { error.reason };
        Error::File { path: path.to_owned(), reason, help: error.help }
    })?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| Error::File {
        path: path.to_owned(),
        reason: system::says(&error),
        help: Some(system::reading(&error).to_owned()),
    })?;
    if bytes.len() as u64 > limit {
        return Err(Error::file(path, format!("is larger than {} MiB", limit >> 20)));
    }
    Ok(Some(bytes))
}

/// [`read_bounded`] for a JSON object.
pub(super) fn read_json(path: &Path, limit: u64) -> Result<Option<Map<String, Value>>, Error> {
    let Some(bytes) = read_bounded(path, limit)? else { return Ok(None) };
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err(Error::file(path, "is not a JSON object")),
        Err(error) => Err(Error::file(path, json_error(&bytes, &error))),
    }
}

/// Why bytes are not JSON; names common other contents.
pub(super) fn json_error(bytes: &[u8], error: &serde_json::Error) -> String {
    if bytes.is_empty() {
        return "is empty".to_owned();
    }
    if bytes.starts_with(b"version https://git-lfs") {
        return "is a Git LFS pointer; fetch the file with `git lfs pull`".to_owned();
    }
    if bytes.trim_ascii_start().starts_with(b"<") {
        return "is an HTML or XML page; the download may have failed".to_owned();
    }
    format!("is not valid JSON: {error}")
}
