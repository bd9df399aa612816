//! Finds the weight files of a path.

use std::path::{Path, PathBuf};

use super::file_names::{INDEX_FILE, file_name};
use super::quoted::listed;
use super::shard_index::{self, Listing};
use super::suggest_path::models_inside;
use super::{ReadError, ReadErrorKind};

/// What a path holds.
#[derive(Debug)]
pub(super) enum Found {
    /// Files to open, in name order.
    Files(Vec<PathBuf>),
    /// An index file, which names them, and its text.
    Index(PathBuf, String),
}

/// Finds the files of a `.safetensors` file or a directory, or the index file that names them.
pub(super) fn discover(path: &Path) -> Result<Found, ReadError> {
    let metadata = path.metadata().map_err(|error| ReadError::io(path, &error))?;
    if metadata.is_dir() {
        return directory(path);
    }
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    if name.ends_with(b".json") {
        return Ok(Found::Index(path.to_owned(), shard_index::read(path)?));
    }
    Ok(Found::Files(vec![path.to_owned()]))
}

fn directory(dir: &Path) -> Result<Found, ReadError> {
    let names = names(dir)?;
    if names.iter().any(|name| name == INDEX_FILE) {
        let index = dir.join(INDEX_FILE);
        // The directory lists the index file, so a missing one is a dangling link.
        let text = shard_index::read(&index)
            .map_err(|error| ReadError { kind: ReadErrorKind::BadIndex, ..error })?;
        return Ok(Found::Index(index, text));
    }
    let weights: Vec<&String> = names.iter().filter(|name| name.ends_with(".safetensors")).collect();
    let mut chosen: Vec<&String> = weights.iter().copied().filter(|name| name.starts_with("model")).collect();
    if chosen.is_empty() {
        let others =
            weights.into_iter().filter(|n| !n.starts_with("adapter") && !n.starts_with("consolidated"));
        chosen = others.collect();
    }
    if chosen.is_empty() {
        let refused = nothing(dir, &names);
        return Err(match models_inside(dir) {
            Some(meant) => refused.help(meant),
            None => refused,
        });
    }
    Ok(Found::Files(chosen.into_iter().map(|name| dir.join(name)).collect()))
}

/// The names of a directory, sorted, hidden files left out.
fn names(dir: &Path) -> Result<Vec<String>, ReadError> {
    let refused = |error: std::io::Error| ReadError::io(dir, &error);
    let mut names = Vec::new();
    for entry in dir.read_dir().map_err(refused)? {
        let name = entry.map_err(refused)?.file_name();
        names.extend(name.into_string().ok().filter(|name| !name.starts_with('.')));
    }
    names.sort_unstable();
    Ok(names)
}

/// The shards that an index file names. All of them exist.
pub(super) fn shards(index: &Path, listing: &Listing<'_>) -> Result<Vec<PathBuf>, ReadError> {
    let dir = index.parent().unwrap_or(Path::new(""));
    let paths: Vec<PathBuf> = listing.shards.iter().map(|name| dir.join(name)).collect();
    // `symlink_metadata`: a dangling link has its own message, when it is opened.
    let missing =
        |path: &&PathBuf| path.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
    let missing: Vec<String> = paths.iter().filter(missing).map(|path| file_name(path)).collect();
    if !missing.is_empty() {
        let (are, file) = if missing.len() == 1 { ("is", "the file") } else { ("are", "the files") };
        let reason = format!("names {}, which {are} missing", listed(&missing));
        return Err(ReadError::bad_index(index, reason).help(format!(
            "download {file} into the same directory, or an index file that does not need it"
        )));
    }
    Ok(paths)
}

/// The error for a directory without weights, which names what it has instead.
fn nothing(dir: &Path, names: &[String]) -> ReadError {
    let first =
        |endings: &[&str]| names.iter().find(|name| endings.iter().any(|ending| name.ends_with(ending)));
    let refused = |reason: String| {
        ReadError::unreadable(dir, format!("no safetensors weights in this directory{reason}"))
    };
    if let Some(name) = first(&[".gguf"]) {
        return refused(format!(": `{name}` is GGUF"))
            .help("use the model's safetensors: GGUF keeps other names, layouts and quantizations");
    }
    if let Some(name) = first(&[".bin", ".pt", ".pth", ".ckpt", ".npz"]) {
        return refused(format!(": `{name}` has another format"))
            .help("convert it to safetensors, or download the model's `.safetensors` files");
    }
    if let Some(name) = first(&[".incomplete", ".part", ".partial", ".crdownload", ".aria2"]) {
        return refused(format!(": `{name}` is an unfinished download")).help("finish the download");
    }
    if let Some(name) = first(&[".safetensors"]) {
        return refused(format!(": `{name}` is an adapter or a second copy, which is ignored"))
            .help("to use it, name the file itself");
    }
    refused(String::new())
        .help("a directory of weights holds `model.safetensors`, or shards and their index file")
}
