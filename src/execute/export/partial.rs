//! Partial results: files and directories named `.NAME.*.partial` beside the output until they are complete.
//!
//! The writer holds a lock on it, which the system releases when the process ends. An unlocked one was left behind by a
//! killed run; the next run with the same output removes it. On file systems without locks nothing is removed.

use std::fs::{self, File, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

use super::Stop;

const ENDING: &str = ".partial";

/// Random letters and digits in the name.
const RANDOM: usize = 6;

/// A file that appears when it is complete. On failure nothing is left.
#[derive(Debug)]
pub(crate) struct NewFile<'s> {
    /// `Some` until the file is published or removed.
    file: Option<NamedTempFile>,
    output: PathBuf,
    stop: &'s Stop,
    /// Holds the lock.
    _held: Option<File>,
}

impl<'s> NewFile<'s> {
    /// Creates an empty file beside the output.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn begin(output: &Path, stop: &'s Stop) -> io::Result<Self> {
        // By default only the owner may read a temporary file; a result gets the usual mode.
        let (file, held) = begin(output, 0o666, stop, |builder, parent| builder.tempfile_in(parent))?;
        Ok(Self { file: Some(file), output: output.to_owned(), stop, _held: held })
    }

    /// Gives the file its name, which must still be free.
    ///
    /// # Errors
    /// Those of the system; then the file is removed.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        self.stop.finish(|| file.persist_noclobber(&self.output).map(drop).map_err(|error| error.error))
    }
}

impl Write for NewFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            self.stop.undo(|| drop(file));
        }
    }
}

/// Creates a file or directory beside the output and locks it, if the file system has locks.
pub(super) fn begin<T: AsRef<Path>>(
    output: &Path,
    mode: u32,
    stop: &Stop,
    make: impl Fn(&Builder<'_, '_>, &Path) -> io::Result<T>,
) -> io::Result<(T, Option<File>)> {
    const TRIES: usize = 100;
    let prefix = prefix(output);
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(ENDING).rand_bytes(RANDOM);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    for _ in 0..TRIES {
        let new = stop.begin(|| make(&builder, parent(output)))?;
        match hold(new.as_ref()) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotFound) => {}
            Err(error) if lacks_resources(&error) => {
                stop.undo(|| {
                    // Dropping has to open the directory, which the limit may forbid; removing an empty one does not.
                    let _ = fs::remove_dir(new.as_ref());
                    drop(new);
                });
                return Err(error);
            }
            held => return Ok((new, held.ok())),
        }
    }
    Err(ErrorKind::ResourceBusy.into())
}

/// Whether locking failed for lack of a resource. Unlocked, the new file would be taken for a leftover.
fn lacks_resources(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// Locks a new file or directory, unless another run took it for a leftover.
fn hold(path: &Path) -> io::Result<File> {
    let file = lock(path)?;
    // Between opening and locking it may have been removed.
    path.symlink_metadata()?;
    Ok(file)
}

fn lock(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes the leftovers of killed runs with this output, and returns their paths.
#[must_use]
pub(crate) fn clear_leftovers(output: &Path) -> Vec<PathBuf> {
    let prefix = prefix(output);
    let Ok(entries) = fs::read_dir(parent(output)) else { return Vec::new() };
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let random = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(ENDING));
        // The leftovers of `a.b`, and other files named partial, are not those of `a`.
        random.is_some_and(|random| {
            random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    let mut leftovers: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(named).collect();
    leftovers.retain(|path| remove(path).is_ok());
    leftovers
}

/// Removes a file or directory that is not locked.
fn remove(path: &Path) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    // Opening anything else, such as a pipe, may block.
    if !found.is_dir() && !found.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let _held = lock(path)?;
    if found.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// The directory that the output is in.
fn parent(output: &Path) -> &Path {
    output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The beginning of a partial result's name. File systems allow names of 255 bytes: a longer name is replaced by its
/// beginning and a hash.
fn prefix(output: &Path) -> String {
    const MAX_NAME: usize = 200;
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    if name.len() <= MAX_NAME {
        return format!(".{name}.");
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let beginning = name.get(..name.floor_char_boundary(MAX_NAME - 17)).unwrap_or_default();
    format!(".{beginning}-{:016x}.", hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    fn names(parent: &Path) -> usize {
        fs::read_dir(parent).unwrap().count()
    }

    #[test]
    fn a_file_appears_when_it_is_whole_or_not_at_all() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["file".to_owned(), "x".repeat(255), "ä".repeat(127)] {
            let output = parent.path().join(&name);
            let begin = || {
                let mut file = NewFile::begin(&output, Box::leak(Box::new(Stop::new()))).unwrap();
                file.write_all(b"whole").unwrap();
                file
            };
            let before = names(parent.path());
            drop(begin());
            assert_eq!(names(parent.path()), before);
            let (first, second) = (begin(), begin());
            assert!(!output.exists());
            first.publish().unwrap();
            assert_eq!(second.publish().unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&output).unwrap(), b"whole");
            assert_eq!(names(parent.path()), before + 1);
        }
        assert_ne!(prefix(Path::new(&"x".repeat(255))), prefix(Path::new(&("x".repeat(254) + "y"))));
    }

    #[test]
    fn leftovers_are_removed_unless_somebody_writes_in_them() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let stop = Stop::new();
        let directory = |builder: &Builder<'_, '_>, parent: &Path| builder.tempdir_in(parent);
        let live = begin(&at("new"), 0o777, &stop, directory).unwrap();
        let live_file = NewFile::begin(&at("new"), &stop).unwrap();
        let others = [
            ".new.dead01",
            ".newer.dead01.partial",
            ".new.er.dead01.partial",
            "new.dead01.partial",
            ".new.mine.partial",
            ".new.my_own.partial",
        ];
        for name in others.iter().chain(&[".new.dead01.partial"]) {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("model.safetensors"), "half").unwrap();
        }
        fs::write(at(".new.dead02.partial"), "half").unwrap();
        let mut cleared = clear_leftovers(&at("new"));
        cleared.sort();
        assert_eq!(cleared, [at(".new.dead01.partial"), at(".new.dead02.partial")]);
        assert!(live.0.path().exists() && others.iter().all(|other| at(other).exists()));
        drop(live);
        live_file.publish().unwrap();
        assert_eq!(names(parent.path()), others.len() + 1);
    }

    #[test]
    fn what_cannot_be_locked_for_want_of_something_is_not_begun() {
        for number in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert!(lacks_resources(&number.into()), "{number:?}");
        }
        // Not every file system has locks.
        for number in [Errno::OPNOTSUPP, Errno::NOLCK, Errno::NOSYS, Errno::ACCESS] {
            assert!(!lacks_resources(&number.into()), "{number:?}");
        }
    }

    #[test]
    fn what_is_just_made_is_not_lost_to_whoever_clears() {
        let parent = tempfile::tempdir().unwrap();
        let output = parent.path().join("new");
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _ = clear_leftovers(&output);
                }
            });
            let stop = Stop::new();
            let missing = (0..500)
                .filter(|_| {
                    let file = NewFile::begin(&output, &stop).unwrap();
                    thread::yield_now();
                    let there = file.publish().is_ok();
                    let _ = fs::remove_file(&output);
                    !there
                })
                .count();
            done.store(true, Ordering::Relaxed);
            assert_eq!(missing, 0);
        });
    }
}
