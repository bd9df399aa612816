//! [`Stop`]: asks a writer to end, or ends the program at once without leaving a partial result.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use super::ExportError;

/// A request to stop, and the partial result that it concerns.
///
/// A request sets a flag that the writer checks between two pieces. If the writer is blocked (a disk that does not respond),
/// the program can also end [at once](Self::at_once), which removes the partial result.
#[derive(Debug, Default)]
pub struct Stop {
    requested: AtomicBool,
    progress: Mutex<Progress>,
}

/// How far the writer is.
#[derive(Debug, Default)]
enum Progress {
    #[default]
    Nothing,
    /// This file or directory is being written.
    Partial(PathBuf),
    /// The result has its name or is removed; the writer only has to report it.
    Settled,
}

/// The state that [`Stop::at_once`] found.
#[derive(Debug)]
pub enum Stopped {
    /// Nothing was being written.
    Nothing,
    /// A partial result, which is removed.
    Removed,
    /// A partial result, which could not be removed.
    Left(PathBuf),
    /// A complete or removed result, which the writer has not reported yet.
    Settled,
}

impl Stop {
    /// No request yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { requested: AtomicBool::new(false), progress: Mutex::new(Progress::Nothing) }
    }

    /// Requests to stop, and returns whether that was requested before.
    pub fn request(&self) -> bool {
        self.requested.swap(true, Ordering::SeqCst)
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::SeqCst)
    }

    pub(super) fn check(&self) -> Result<(), ExportError> {
        if self.requested() { Err(ExportError::Interrupted) } else { Ok(()) }
    }

    /// Removes the partial result. Afterwards nothing can be published, and the writer blocks forever: the caller has to
    /// end the program.
    ///
    /// Waits while a result is being published or removed.
    pub fn at_once(&self) -> Stopped {
        let progress = self.progress();
        let stopped = match &*progress {
            Progress::Nothing => Stopped::Nothing,
            Progress::Settled => Stopped::Settled,
            Progress::Partial(path) if remove(path).is_ok() => Stopped::Removed,
            Progress::Partial(path) => Stopped::Left(path.clone()),
        };
        if !matches!(*progress, Progress::Settled) {
            std::mem::forget(progress);
        }
        stopped
    }

    /// Creates the file or directory that is going to be written.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn begin<T: AsRef<Path>>(&self, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let mut progress = self.progress();
        let new = make()?;
        *progress = Progress::Partial(new.as_ref().to_owned());
        Ok(new)
    }

    /// Publishes the result, or removes it: `finish` leaves no partial result either way.
    ///
    /// # Errors
    /// Those of `finish`.
    pub fn finish<T, E>(&self, finish: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut progress = self.progress();
        let finished = finish();
        *progress = Progress::Settled;
        finished
    }

    /// Removes the result.
    pub fn undo(&self, remove: impl FnOnce()) {
        let mut progress = self.progress();
        remove();
        *progress = Progress::Settled;
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a file, or a directory in which another thread may still be making files.
fn remove(path: &Path) -> io::Result<()> {
    const TRIES: u32 = 20;
    let mut result = Ok(());
    for _ in 0..TRIES {
        result = match path.symlink_metadata() {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => Err(error),
        };
        if result.is_ok() {
            break;
        }
        sleep(Duration::from_millis(5));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_once_removes_a_partial_result_without_the_writer() {
        let parent = tempfile::tempdir().unwrap();
        let stop = Stop::new();
        assert!(!stop.request() && stop.request() && stop.requested());
        let folder = stop.begin(|| tempfile::tempdir_in(parent.path())).unwrap();
        fs::write(folder.path().join("model.safetensors"), "half").unwrap();
        assert!(matches!(stop.at_once(), Stopped::Removed));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        assert!(stop.progress.try_lock().is_err(), "nothing can be published");
    }

    #[test]
    fn at_once_leaves_a_published_result_and_one_never_begun() {
        let stop = Stop::new();
        stop.begin(|| Err::<PathBuf, _>(io::ErrorKind::NotFound.into())).unwrap_err();
        let folder = stop.begin(tempfile::tempdir).unwrap();
        stop.finish(|| Err::<(), _>("no name")).unwrap_err();
        assert!(matches!(stop.at_once(), Stopped::Settled));
        assert!(folder.path().exists());
        assert!(matches!(Stop::new().at_once(), Stopped::Nothing));
    }
}
