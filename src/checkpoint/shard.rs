//! [`Shard`]: one `.safetensors` file, its header checked, its data read by position.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::file::open_regular;
use super::header::{DAMAGED, Header};
use super::sniff::sniff;
use super::{ReadError, StoredTensor};

/// Headers are shorter than this many bytes (the format's own limit).
const MAX_HEADER: u64 = 100_000_000;
/// Bytes before the header, which hold its length.
const PREFIX: u64 = 8;

/// Identifies the state of a file, to notice changes after planning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Length in bytes.
    pub len: u64,
    /// Modification time in nanoseconds since the epoch. Programs can set it back.
    pub modified: u128,
    /// Time of the last status change (bytes, mode, owner, links) in nanoseconds since the epoch. Programs cannot set it.
    pub changed: u128,
    /// Device and inode where the system has them.
    pub identity: (u64, u64),
}

impl Fingerprint {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        // Times before the epoch wrap around, which keeps them distinct.
        let time = |seconds: i64, nanoseconds: i64| {
            u128::from(seconds.cast_unsigned()) * 1_000_000_000 + u128::from(nanoseconds.cast_unsigned())
        };
        Self {
            len: metadata.len(),
            modified: time(metadata.mtime(), metadata.mtime_nsec()),
            changed: time(metadata.ctime(), metadata.ctime_nsec()),
            identity: (metadata.dev(), metadata.ino()),
        }
    }
}

/// An open file with a checked header.
#[derive(Debug)]
pub struct Shard {
    /// The file as it was named. A link keeps its own name.
    pub path: PathBuf,
    /// `__metadata__`, in file order.
    pub metadata: Option<Vec<(String, String)>>,
    /// Offset of the data in bytes.
    pub data_start: u64,
    /// Bytes after the last tensor.
    pub trailing: u64,
    /// State of the file when its header was read.
    pub fingerprint: Fingerprint,
    /// `None` when too many files are open: the file is then opened for each read.
    file: Option<Held>,
}

impl Shard {
    /// Opens a file, and reads and checks its header. Returns the tensors in file order.
    ///
    /// # Errors
    /// The first error found, with the tensor and the numbers.
    pub fn open(path: &Path) -> Result<(Self, Vec<StoredTensor>), ReadError> {
        let (file, metadata) = open_regular(path)?;
        let fingerprint = Fingerprint::of(&metadata);
        let header = read_header(path, &file, fingerprint.len)?;
        let data_start = PREFIX + header.len() as u64;
        let parsed = Header::parse(&header, data_start, fingerprint.len);
        let Header { tensors, metadata, trailing } =
            parsed.map_err(|refused| ReadError::unreadable(path, refused.reason).help(refused.help))?;
        let file = Held::new(file);
        Ok((Self { path: path.to_owned(), metadata, data_start, trailing, fingerprint, file }, tensors))
    }

    /// Fills `buffer` from the absolute byte `offset`, by a positioned read. Several threads may read at once.
    ///
    /// # Errors
    /// An I/O error; `UnexpectedEof` for a file that has shrunk.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if let Some(held) = &self.file {
            return held.file.read_exact_at(buffer, offset);
        }
        let (file, metadata) = open_regular(&self.path).map_err(|error| io::Error::other(error.reason))?;
        if Fingerprint::of(&metadata) != self.fingerprint {
            return Err(io::Error::other("the file is another than the one that was planned with"));
        }
        file.read_exact_at(buffer, offset)
    }

    /// Whether both the open file and the file at the path are still in the state in which the header was read.
    ///
    /// # Errors
    /// An I/O error. For a path that no longer exists the answer is `false`.
    pub fn unchanged(&self) -> io::Result<bool> {
        if let Some(held) = &self.file
            && Fingerprint::of(&held.file.metadata()?) != self.fingerprint
        {
            return Ok(false);
        }
        match self.path.metadata() {
            Ok(named) => Ok(Fingerprint::of(&named) == self.fingerprint),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// `__metadata__.format`: the framework that wrote it (`mlx`, `pt`).
    #[must_use]
    pub fn format(&self) -> Option<&str> {
        let pairs = self.metadata.iter().flatten();
        pairs.filter(|(name, _)| name == "format").map(|(_, value)| value.as_str()).next_back()
    }
}

/// Number of files that all shards hold open.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// A file that stays open.
#[derive(Debug)]
struct Held {
    file: File,
}

impl Held {
    fn new(file: File) -> Option<Self> {
        let held = Self { file };
        // Dropping the file decrements the count.
        (HELD.fetch_add(1, Ordering::Relaxed) < max_held()).then_some(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Maximum number of files held open: half of what the process may have open, after that limit is raised as far as the
/// system allows. The other half is for loading.
fn max_held() -> usize {
    static MAX: OnceLock<usize> = OnceLock::new();
    *MAX.get_or_init(|| {
        let mut limit = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            limit = raised;
        }
        limit.current.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX)) / 2
    })
}

/// The text of the header, after checking its length against the file.
fn read_header(path: &Path, file: &File, len: u64) -> Result<String, ReadError> {
    let refused = |reason: String| ReadError::unreadable(path, reason);
    if len == 0 {
        return Err(refused("empty (0 bytes)".into())
            .help("download the file again; the download was probably interrupted"));
    }
    let mut start = [0; 64];
    let start = start.get_mut(..usize::try_from(len).map_or(64, |len| len.min(64))).unwrap_or_default();
    file.read_exact_at(start, 0).map_err(|error| ReadError::io(path, &error))?;
    let other = || sniff(start).map(|format| refused(format.reason.into()).help(format.help));

    let Some(prefix) = start.first_chunk::<8>() else {
        return Err(other().unwrap_or_else(|| {
            refused(format!("{len} bytes: too short for a safetensors header")).help(DAMAGED)
        }));
    };
    let length = u64::from_le_bytes(*prefix);
    let room = len - PREFIX;
    if length >= MAX_HEADER {
        return Err(other().unwrap_or_else(|| {
            refused(format!("a header of {length} bytes: the format allows less than {MAX_HEADER}"))
                .help(DAMAGED)
        }));
    }
    if length > room {
        return Err(other().unwrap_or_else(|| {
            let reason =
                format!("a header of {length} bytes, but only {room} follow (interrupted download?)");
            refused(reason).help(DAMAGED)
        }));
    }
    let mut header = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut header, PREFIX).map_err(|error| ReadError::io(path, &error))?;
    if !header.trim_ascii_start().starts_with(b"{") {
        return Err(
            other().unwrap_or_else(|| refused("the header is not a JSON object".into()).help(DAMAGED))
        );
    }
    String::from_utf8(header).map_err(|_| refused("the header is not UTF-8 text".into()).help(DAMAGED))
}

#[cfg(test)]
mod tests;
