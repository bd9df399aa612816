//! [`Stop`]: how whoever writes something is asked to end, and how the program ends at once without leaving half of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use super::ExportError;

/// A request to stop, and what is half written as long as nobody has heard it.
///
/// Asking sets a flag that the writer looks at between two pieces. Where it is too busy to look (a disk that does not
/// answer), the program may also end [at once](Self::at_once): what is half written is then removed by whoever ends it.
#[derive(Debug, Default)]
pub struct Stop {
    requested: AtomicBool,
    standing: Mutex<Standing>,
}

/// How far the writing is.
#[derive(Debug, Default)]
enum Standing {
    #[default]
    Nothing,
    /// This file or directory is half written.
    Half(PathBuf),
    /// What was written has its name or is gone: what is left is to say so.
    Settled,
}

/// What there was when everything came to a stop.
#[derive(Debug)]
pub enum Stopped {
    /// Nothing was being written.
    Nothing,
    /// Something half written, which is gone.
    Removed,
    /// Something half written, which could not be removed.
    Left(PathBuf),
    /// All was written, or was removed already; whoever wrote it has still to say so.
    Settled,
}

impl Stop {
    /// Nobody has asked yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { requested: AtomicBool::new(false), standing: Mutex::new(Standing::Nothing) }
    }

    /// Asks to stop, and says whether that was asked before.
    pub fn request(&self) -> bool {
        self.requested.swap(true, Ordering::SeqCst)
    }

    /// Whether somebody has asked to stop.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::SeqCst)
    }

    pub(super) fn check(&self) -> Result<(), ExportError> {
        if self.requested() { Err(ExportError::Interrupted) } else { Ok(()) }
    }

    /// Removes what is half written. From then on nothing gets its name any more, and whoever writes waits for ever: the
    /// caller has to end the program.
    ///
    /// Waits for a name that is just being given, or for what is being removed already.
    pub fn at_once(&self) -> Stopped {
        let standing = self.standing();
        let stopped = match &*standing {
            Standing::Nothing => Stopped::Nothing,
            Standing::Settled => Stopped::Settled,
            Standing::Half(path) if remove(path).is_ok() => Stopped::Removed,
            Standing::Half(path) => Stopped::Left(path.clone()),
        };
        if !matches!(*standing, Standing::Settled) {
            std::mem::forget(standing);
        }
        stopped
    }

    /// Makes the file or directory that is going to be written.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn begin<T: AsRef<Path>>(&self, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let mut standing = self.standing();
        let new = make()?;
        *standing = Standing::Half(new.as_ref().to_owned());
        Ok(new)
    }

    /// Gives what was written its name, or removes it: `finish` leaves nothing half written either way.
    ///
    /// # Errors
    /// Those of `finish`.
    pub fn finish<T, E>(&self, finish: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut standing = self.standing();
        let finished = finish();
        *standing = Standing::Settled;
        finished
    }

    /// Removes what was written.
    pub fn undo(&self, remove: impl FnOnce()) {
        let mut standing = self.standing();
        remove();
        *standing = Standing::Settled;
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn at_once_removes_what_is_half_written_though_nobody_looks() {
        let parent = tempfile::tempdir().unwrap();
        let stop = Stop::new();
        assert!(!stop.request() && stop.request() && stop.requested());
        let folder = stop.begin(|| tempfile::tempdir_in(parent.path())).unwrap();
        fs::write(folder.path().join("model.safetensors"), "half").unwrap();
        assert!(matches!(stop.at_once(), Stopped::Removed));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        assert!(stop.standing.try_lock().is_err(), "nothing gets its name any more");
    }

    #[test]
    fn at_once_leaves_what_has_its_name_and_what_was_never_begun() {
        let stop = Stop::new();
        stop.begin(|| Err::<PathBuf, _>(io::ErrorKind::NotFound.into())).unwrap_err();
        let folder = stop.begin(tempfile::tempdir).unwrap();
        stop.finish(|| Err::<(), _>("no name")).unwrap_err();
        assert!(matches!(stop.at_once(), Stopped::Settled));
        assert!(folder.path().exists());
        assert!(matches!(Stop::new().at_once(), Stopped::Nothing));
    }
}
