//! Opens files that the user named: only regular files, and never more than a limit.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use super::ReadError;

/// Opens a regular file. Its type is checked before, because opening a device can have effects, and after, because the
/// path may lead to another file by then. A FIFO that took its place is opened without waiting for a writer.
///
/// # Errors
/// It does not exist, is not a regular file, or cannot be opened.
pub(crate) fn open_regular(path: &Path) -> Result<(File, Metadata), ReadError> {
    let refused = |error: std::io::Error| ReadError::io(path, &error);
    regular(path, &path.metadata().map_err(refused)?)?;
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    regular(path, &metadata)?;
    Ok((file, metadata))
}

/// Reads a text file of at most `limit` bytes; a byte order mark is dropped.
pub(super) fn read_text(path: &Path, limit: u64) -> Result<String, ReadError> {
    let (file, metadata) = open_regular(path)?;
    let too_large = || ReadError::unreadable(path, format!("larger than {} MB", limit / 1_000_000));
    if metadata.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // The length above may be wrong (files of /proc have none), so one byte beyond the limit is read.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| ReadError::io(path, &error))?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    let text = String::from_utf8(bytes).map_err(|_| ReadError::unreadable(path, "not UTF-8 text"))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn regular(path: &Path, metadata: &Metadata) -> Result<(), ReadError> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(if metadata.is_dir() {
        ReadError::unreadable(path, "a directory, not a file")
    } else {
        ReadError::unreadable(path, "not a regular file")
            .help("pipes and devices are not supported; write a file first")
    })
}
