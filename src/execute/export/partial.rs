//! What is written stands beside its place, as `.NAME.*.partial`, until it is whole and gets its name.
//!
//! Whoever writes it holds a lock on it, which ends with the process however that ends. So what nobody holds was left
//! behind by a run that was killed, and the next one that writes to the same place removes it.

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

/// A file that appears when all of it is written; where that fails, nothing is left.
#[derive(Debug)]
pub struct NewFile<'s> {
    /// There until the file is published or removed.
    file: Option<NamedTempFile>,
    output: PathBuf,
    stop: &'s Stop,
    /// Holds the lock.
    _held: Option<File>,
}

impl<'s> NewFile<'s> {
    /// An empty file beside its place.
    ///
    /// # Errors
    /// What the system says where none can be made.
    pub fn begin(output: &Path, stop: &'s Stop) -> io::Result<Self> {
        // A temporary file is its owner's alone; a result is like any other file.
        let (file, held) = begin(output, 0o666, stop, |builder, parent| builder.tempfile_in(parent))?;
        Ok(Self { file: Some(file), output: output.to_owned(), stop, _held: held })
    }

    /// Gives the file its name, which nothing else may have by now.
    ///
    /// # Errors
    /// What the system says; then the file is gone.
    pub fn publish(mut self) -> io::Result<()> {
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

/// Makes something beside its place, and holds it. Where the file system locks nothing, it is held by nobody, and leftovers
/// stay where they are.
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
            Err(error) if is_short_of_something(&error) => {
                stop.undo(|| {
                    // Where no file may be opened any more, nobody can look into the directory, which is empty.
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

/// Whether a lock was not to be had just now, though there are locks: what is written without would be taken for a leftover.
fn is_short_of_something(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// Locks what was just made, unless somebody took it for a leftover meanwhile.
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

/// Removes what was left behind beside a place by runs that were killed, and says what that was.
#[must_use]
pub fn clear_leftovers(output: &Path) -> Vec<PathBuf> {
    let prefix = prefix(output);
    let Ok(entries) = fs::read_dir(parent(output)) else { return Vec::new() };
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let random = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(ENDING));
        // So `a` does not take `a.b`'s for its own, nor what somebody else calls partial.
        random.is_some_and(|random| {
            random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    let mut leftovers: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(named).collect();
    leftovers.retain(|path| remove(path).is_ok());
    leftovers
}

/// Removes a file or directory that nobody holds.
fn remove(path: &Path) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    // Opening anything else may take for ever.
    if !found.is_dir() && !found.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let _held = lock(path)?;
    if found.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// The directory that a place is in.
fn parent(output: &Path) -> &Path {
    output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What the name begins with. File systems allow names of 255 bytes; the beginning and a hash stand for one that
/// leaves no room for what comes after it.
fn prefix(output: &Path) -> String {
    const LONGEST: usize = 200;
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    if name.len() <= LONGEST {
        return format!(".{name}.");
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let beginning = name.get(..name.floor_char_boundary(LONGEST - 17)).unwrap_or_default();
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
            assert!(is_short_of_something(&number.into()), "{number:?}");
        }
        // Not every file system has locks.
        for number in [Errno::OPNOTSUPP, Errno::NOLCK, Errno::NOSYS, Errno::ACCESS] {
            assert!(!is_short_of_something(&number.into()), "{number:?}");
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
