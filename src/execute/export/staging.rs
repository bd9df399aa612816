//! [`Staging`]: the temporary directory that an export is written to.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::place::Place;
use super::{ExportError, Stop, partial};

/// A directory beside the output, removed when it is dropped.
#[derive(Debug)]
pub(super) struct Staging<'s> {
    /// `Some` until the directory is published or removed.
    folder: Option<TempDir>,
    path: PathBuf,
    place: Place,
    stop: &'s Stop,
    /// Holds the lock.
    held: Option<File>,
}

impl<'s> Staging<'s> {
    /// Creates a directory beside the output.
    pub(super) fn new(place: Place, stop: &'s Stop) -> Result<Self, ExportError> {
        let (folder, held) =
            partial::begin(&place.output, place.mode, stop, |builder, parent| builder.tempdir_in(parent))
                .map_err(|error| place.refused(error))?;
        Ok(Self { path: folder.path().to_owned(), folder: Some(folder), place, stop, held })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Explains an error whose cause is that the temporary directory is gone.
    pub(super) fn explained(&self, error: ExportError) -> ExportError {
        match &error {
            ExportError::Write { source, .. }
                if source.kind() == ErrorKind::NotFound && !self.path.exists() =>
            {
                let shown = self.path.display();
                let reason = format!("the temporary directory `{shown}` was moved or removed");
                let help = "run it again and leave that directory alone";
                ExportError::Unfit { path: self.path.clone(), reason, help }
            }
            _ => error,
        }
    }

    /// Gives the finished directory its name.
    pub(super) fn publish(mut self) -> Result<(), ExportError> {
        let folder = self.folder.take();
        let output = &self.place.output;
        let exists = || ExportError::Exists { path: output.clone(), what: "created in the meantime" };
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
            // Renamed, it must not be removed.
            let _ = folder.map(TempDir::keep);
            Ok(())
        })
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take() {
            // Removing opens the directory, which the limit of open files may only allow once this one is closed.
            self.held = None;
            self.stop.undo(|| drop(folder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(parent: &Path, name: &str) -> Place {
        Place { parent: parent.to_owned(), output: parent.join(name), mode: 0o777 }
    }

    #[test]
    fn an_output_may_have_the_longest_name_there_is() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["x".repeat(255), "ä".repeat(127)] {
            let stop = Stop::new();
            Staging::new(place(parent.path(), &name), &stop).unwrap().publish().unwrap();
            let output = parent.path().join(&name);
            assert!(output.is_dir());
        }
    }
}
