//! [`Staging`]: the directory that an export is written in before it gets its name.
//!
//! Whoever writes in it holds a lock on it, which ends with the process however that ends. So a directory that nobody
//! holds was left behind by an export that was killed, and the next one to the same place removes it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::place::Place;
use super::{ExportError, Stop};

const ENDING: &str = ".partial";

/// A directory beside the output, removed when it is dropped.
#[derive(Debug)]
pub(super) struct Staging<'s> {
    /// There until the directory is published or removed.
    folder: Option<TempDir>,
    path: PathBuf,
    place: Place,
    stop: &'s Stop,
    /// Holds the lock.
    _held: Option<File>,
}

impl<'s> Staging<'s> {
    /// A new directory beside the place.
    pub(super) fn new(place: Place, stop: &'s Stop) -> Result<Self, ExportError> {
        let prefix = prefix(&place.output);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(ENDING);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let folder =
            stop.begin(|| builder.tempdir_in(&place.parent)).map_err(|error| place.refused(error))?;
        // Where directories cannot be locked, leftovers stay where they are.
        let held = File::open(folder.path()).ok().filter(|file| file.try_lock().is_ok());
        Ok(Self { path: folder.path().to_owned(), folder: Some(folder), place, stop, _held: held })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Says so where the directory that is written in has gone.
    pub(super) fn explained(&self, error: ExportError) -> ExportError {
        match &error {
            ExportError::Write { source, .. }
                if source.kind() == ErrorKind::NotFound && !self.path.exists() =>
            {
                let shown = self.path.display();
                let reason = format!("`{shown}`, in which the export was written, was moved or removed");
                let help = "run it again when nothing else is done to that directory";
                ExportError::Unfit { path: self.path.clone(), reason, help }
            }
            _ => error,
        }
    }

    /// Gives the finished directory its name.
    pub(super) fn publish(mut self) -> Result<(), ExportError> {
        let folder = self.folder.take();
        let output = &self.place.output;
        let exists = || ExportError::Exists { path: output.clone(), what: "made meanwhile" };
        self.stop.finish(|| {
            if output.symlink_metadata().is_ok() {
                return Err(exists());
            }
            fs::rename(&self.path, output).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory => {
                    exists()
                }
                _ => self.explained(ExportError::write(output)(error)),
            })?;
            // It no longer stands where it would be removed from.
            let _ = folder.map(TempDir::keep);
            Ok(())
        })
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take() {
            self.stop.undo(|| drop(folder));
        }
    }
}

/// Removes what exports to the same place left behind when they were killed, and says what that was.
pub(super) fn clear_leftovers(place: &Place) -> Vec<PathBuf> {
    let prefix = prefix(&place.output);
    let Ok(entries) = fs::read_dir(&place.parent) else { return Vec::new() };
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // What is random about it has no dot, so that `a` does not take `a.b`'s for its own.
        let random = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(ENDING));
        random.is_some_and(|random| !random.is_empty() && !random.contains('.'))
    };
    let mut leftovers: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(named).collect();
    leftovers.retain(|path| remove(path).is_ok());
    leftovers
}

/// Removes a directory that nobody holds.
fn remove(path: &Path) -> io::Result<()> {
    if !path.symlink_metadata()?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    let folder = File::open(path)?;
    folder.try_lock()?;
    fs::remove_dir_all(path)
}

/// What the directory's name begins with. File systems allow names of 255 bytes; the beginning and a hash stand for
/// one that leaves no room for what comes after it.
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
    use super::*;

    fn place(parent: &Path, name: &str) -> Place {
        Place { parent: parent.to_owned(), output: parent.join(name) }
    }

    #[test]
    fn an_output_may_have_the_longest_name_there_is() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["x".repeat(255), "ä".repeat(127)] {
            let stop = Stop::new();
            Staging::new(place(parent.path(), &name), &stop).unwrap().publish().unwrap();
            let output = parent.path().join(&name);
            assert!(output.is_dir());
            assert_ne!(prefix(&output), prefix(Path::new(&format!("{}y", &name[..name.len() - 2]))));
        }
    }

    #[test]
    fn leftovers_are_removed_unless_somebody_writes_in_them() {
        let parent = tempfile::tempdir().unwrap();
        let stop = Stop::new();
        let live = Staging::new(place(parent.path(), "new"), &stop).unwrap();
        let dead = parent.path().join(".new.dead01.partial");
        let others = [".new.dead01", ".newer.dead01.partial", ".new.er.dead01.partial", "new.dead01.partial"];
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("model.safetensors"), "half").unwrap();
        for other in others {
            fs::create_dir(parent.path().join(other)).unwrap();
        }
        fs::write(parent.path().join(".new.file01.partial"), "a file").unwrap();
        assert_eq!(clear_leftovers(&place(parent.path(), "new")), [dead]);
        assert!(live.path().exists() && others.iter().all(|other| parent.path().join(other).exists()));
        drop(live);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), others.len() + 1);
    }
}
