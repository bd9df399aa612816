//! [`Weights`]: the headers of all files of a checkpoint.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::discover::{Found, discover, shards};
use super::file_names::file_name;
use super::quoted::{Quoted, listed};
use super::shard_index::Listing;
use super::{
    Key, Origin, ReadError, ReadErrorKind, ReadWarning, Shard, StoredTensor, TensorIndex, TensorInfo,
};

/// The headers of a file, a directory of shards, or an index file, read and checked.
#[derive(Debug)]
pub struct Weights {
    /// The path as it was named.
    pub path: PathBuf,
    /// The open files, in name order.
    pub shards: Vec<Shard>,
    /// Every tensor of every shard.
    pub index: TensorIndex,
    /// `__metadata__.format` of the first shard that has one (`mlx`, `pt`).
    pub format: Option<String>,
    /// Findings that do not prevent reading.
    pub warnings: Vec<ReadWarning>,
}

impl Weights {
    /// Opens a `.safetensors` file, an index file or a directory, reading headers only, shards in parallel.
    ///
    /// # Errors
    /// Every error found, each with file and tensor.
    pub fn open(path: &Path) -> Result<Self, Vec<ReadError>> {
        let found = discover(path).map_err(|error| vec![error])?;
        let (paths, listing) = match &found {
            Found::Files(paths) => (paths.clone(), None),
            Found::Index(index, text) => {
                let listing = Listing::of(index, text).map_err(|error| vec![error])?;
                let paths = shards(index, &listing).map_err(|error| vec![error])?;
                (paths, Some((index, listing)))
            }
        };
        // An index file names the shard, so a missing one is an error of the index.
        let missing = |error: ReadError| match (error.kind, &listing) {
            (ReadErrorKind::NotFound, Some(_)) => ReadError { kind: ReadErrorKind::BadIndex, ..error },
            _ => error,
        };
        let opened: Vec<_> = paths.par_iter().map(|path| Shard::open(path).map_err(missing)).collect();
        let (mut shards, mut tensors) = (Vec::with_capacity(opened.len()), Vec::with_capacity(opened.len()));
        let mut errors = Vec::new();
        for result in opened {
            match result {
                Ok((shard, stored)) => {
                    shards.push(shard);
                    tensors.push(stored);
                }
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(shortened(errors));
        }
        let index = TensorIndex::new(entries(tensors));
        distinct(path, &shards, &index).map_err(|error| vec![error])?;
        let mut warnings: Vec<ReadWarning> = Vec::new();
        for shard in shards.iter().filter(|shard| shard.trailing > 0) {
            warnings.push(ReadWarning::TrailingBytes { path: shard.path.clone(), bytes: shard.trailing });
        }
        if let Some((file, listing)) = listing {
            warnings.extend(compare(file, listing, &shards, &index).map_err(|error| vec![error])?);
        }
        let format = shards.iter().find_map(Shard::format).map(str::to_owned);
        Ok(Self { path: path.to_owned(), shards, index, format, warnings })
    }

    /// Shard and range of a tensor's bytes. A tied tensor has the bytes of the one it is tied to.
    ///
    /// # Panics
    /// If `info` is not from this checkpoint's index.
    #[must_use]
    pub fn locate(&self, info: &TensorInfo) -> (&Shard, Range<u64>) {
        match &info.origin {
            Origin::Stored { shard, range } => (&self.shards[*shard], range.clone()),
            Origin::Tied(key) => match self.index.get(key.as_str()) {
                Some(info) => self.locate(info),
                None => panic!("`{key}` is not in the index it is tied in"),
            },
        }
    }
}

/// Keeps the first errors and counts the others: hundreds of shards may fail for one reason.
fn shortened(mut errors: Vec<ReadError>) -> Vec<ReadError> {
    const MAX_ERRORS: usize = 8;
    let more = errors.len().saturating_sub(MAX_ERRORS);
    errors.truncate(MAX_ERRORS);
    if let Some(last) = errors.last_mut().filter(|_| more > 0) {
        let files = if more == 1 { "file is" } else { "files are" };
        last.reason = format!("{}; {more} more {files} refused", last.reason);
    }
    errors
}

fn entries(tensors: Vec<Vec<StoredTensor>>) -> Vec<(Key, TensorInfo)> {
    let mut entries = Vec::with_capacity(tensors.iter().map(Vec::len).sum());
    for (shard, tensors) in tensors.into_iter().enumerate() {
        entries.extend(tensors.into_iter().map(|StoredTensor { key, dtype, shape, range }| {
            (key, TensorInfo { dtype, shape, origin: Origin::Stored { shard, range } })
        }));
    }
    entries
}

fn shard_of(info: &TensorInfo) -> usize {
    match info.origin {
        Origin::Stored { shard, .. } => shard,
        Origin::Tied(_) => usize::MAX,
    }
}

/// Refuses a tensor that is in two files.
fn distinct(path: &Path, shards: &[Shard], index: &TensorIndex) -> Result<(), ReadError> {
    let pairs = index.entries().windows(2);
    let mut twice = pairs.filter_map(|pair| match pair {
        [(a, first), (b, second)] if a == b => Some((a, shard_of(first), shard_of(second))),
        _ => None,
    });
    let Some((key, first, second)) = twice.next() else {
        return Ok(());
    };
    let name = |shard: usize| shards.get(shard).map(|shard| file_name(&shard.path)).unwrap_or_default();
    let more = match twice.count() {
        0 => String::new(),
        more => format!(" (and {more} more tensors)"),
    };
    let reason =
        format!("tensor {} is in both `{}` and `{}`{more}", Quoted(key.as_str()), name(first), name(second));
    Err(ReadError::unreadable(path, reason)
        .help("remove the file that does not belong, or write an index file that names the right ones"))
}

/// Compares an index file with the tensors in its shards; walks both lists in key order.
fn compare(
    file: &Path,
    listing: Listing<'_>,
    shards: &[Shard],
    index: &TensorIndex,
) -> Result<Vec<ReadWarning>, ReadError> {
    let Listing { shards: names, mut tensors } = listing;
    if !tensors.is_sorted() {
        tensors.par_sort();
    }
    let twice = tensors.windows(2).filter_map(|pair| match pair {
        [(a, _), (b, _)] if a == b => Some(a),
        _ => None,
    });
    let mut twice: Vec<_> = twice.collect();
    twice.dedup();
    if !twice.is_empty() {
        return Err(ReadError::bad_index(file, format!("lists {} more than once", listed(&twice)))
            .help("keep one entry for each tensor"));
    }
    let mut warnings = Vec::new();
    let mut wrong = Vec::new();
    let mut unlisted = |(key, info): &(Key, TensorInfo)| {
        if let Some(shard) = shards.get(shard_of(info)) {
            warnings.push(ReadWarning::UnlistedTensor { path: shard.path.clone(), key: key.clone() });
        }
    };
    let mut stored = index.entries().iter().peekable();
    for (key, shard) in tensors {
        while let Some(entry) = stored.next_if(|(stored, _)| stored.as_str() < &*key) {
            unlisted(entry);
        }
        match stored.peek() {
            Some((stored_key, info)) if stored_key.as_str() == key && shard_of(info) == shard => {
                stored.next();
            }
            _ => wrong.push((key, shard)),
        }
    }
    if let Some((key, shard)) = wrong.first() {
        let name = names.get(*shard).map_or("", String::as_str);
        let elsewhere = index.get(key).map(shard_of).and_then(|shard| names.get(shard));
        let fact =
            elsewhere.map_or("does not have it".into(), |other| format!("does not have it (`{other}` does)"));
        let more = match wrong.len() {
            1 => String::new(),
            _ => {
                format!(
                    "; the same holds for {}",
                    listed(&wrong.iter().skip(1).map(|(key, _)| key).collect::<Vec<_>>())
                )
            }
        };
        let reason = format!("puts {} into `{name}`, which {fact}{more}", Quoted(key));
        return Err(ReadError::bad_index(file, reason)
            .help("download the index file and its shards from the same place"));
    }
    stored.for_each(unlisted);
    Ok(warnings)
}

#[cfg(test)]
mod tests;
