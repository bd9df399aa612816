//! [`Header`]: the JSON at the start of a safetensors file. A fast reader handles the form that writers use; whatever it
//! declines goes to the strict reader, which alone reports errors.
//!
//! Nothing is trusted: sizes are checked against shapes, names and ranges against each other and against the file.

mod error;
mod fast;
mod strict;
mod validate;

use super::StoredTensor;
use super::quoted::Quoted;
pub(super) use error::DAMAGED;
pub(super) use error::HeaderError;
use error::{RENAME, TWICE};

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
    /// The first error found.
    pub fn parse(text: &str, data_start: u64, file_len: u64) -> Result<Self, HeaderError> {
        let (mut tensors, metadata) = fast::read(text).map_or_else(|| strict::read(text), Ok)?;
        tensors.iter().try_for_each(|tensor| printable(tensor.key.as_str()))?;
        distinct(&tensors)?;
        if !tensors.is_sorted_by_key(by_offset) {
            tensors.sort_by_key(by_offset);
        }
        tensors.shrink_to_fit();
        let trailing = place(&mut tensors, data_start, file_len)?;
        Ok(Self { tensors, metadata, trailing })
    }
}

/// Refuses names that could manipulate a terminal, or are longer than any real name: names are printed, folded and
/// matched everywhere.
fn printable(name: &str) -> Result<(), HeaderError> {
    const MAX_BYTES: usize = 4096;
    let plays = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if name.len() > MAX_BYTES {
        let reason = format!("the name {} has {} bytes, more than {MAX_BYTES}", Quoted(name), name.len());
        return Err(HeaderError::new(reason, RENAME));
    }
    // Nearly all names are plain ASCII.
    if name.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~')) {
        return Ok(());
    }
    match name.chars().find(|&c| plays(c)) {
        Some(c) => {
            let reason = format!("the name {} has a control character, {}", Quoted(name), c.escape_unicode());
            Err(HeaderError::new(reason, RENAME))
        }
        None => Ok(()),
    }
}

/// Refuses two tensors with the same name. Many writers sort names; for the others, sorting hashes is cheaper than a set of
/// names.
fn distinct(tensors: &[StoredTensor]) -> Result<(), HeaderError> {
    if tensors.is_sorted_by(|a, b| a.key < b.key) {
        return Ok(());
    }
    // Numbers sort fast. Names are compared only if two hashes are equal.
    let mut numbers: Vec<u64> = tensors.iter().map(|tensor| hash(tensor.key.as_str())).collect();
    numbers.sort_unstable();
    if numbers.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    let mut hashed: Vec<(u64, &str)> =
        tensors.iter().map(|tensor| tensor.key.as_str()).map(|name| (hash(name), name)).collect();
    hashed.sort_unstable();
    match hashed.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(HeaderError::new(format!("two tensors are named {}", Quoted(pair[0].1)), TWICE)),
        None => Ok(()),
    }
}

/// Hashes eight bytes at a time. Names that are made to collide are compared in full: slower, but correct.
fn hash(name: &str) -> u64 {
    name.as_bytes().chunks(8).fold(name.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
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
            return Err(format!("no tensor covers bytes {filled}..{start} of the data, before {name}"));
        }
        filled = end;
        before = Some(tensor);
    }
    if filled > available {
        let cut = tensors.iter().find(|tensor| tensor.range.end > available);
        let short = filled - available;
        return Err(format!(
            "{short} {} short (interrupted download?): the file has {available} bytes of data, and {} takes bytes {}..{}",
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

#[cfg(test)]
mod tests;
