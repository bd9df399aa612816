//! [`Place`]: where an export goes, and why it cannot go there.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::ExportError;
use crate::plan::Plan;

/// The path of a new directory, whose parent exists.
#[derive(Debug)]
pub(super) struct Place {
    /// The existing parent directory.
    pub(super) parent: PathBuf,
    /// The path of the new directory.
    pub(super) output: PathBuf,
    /// Its mode before the umask: that of the model's directory, plus all rights for the owner.
    pub(super) mode: u32,
}

impl Place {
    /// Refuses what can be refused before anything is read or written.
    pub(super) fn of(output: &Path, plan: &Plan) -> Result<Self, ExportError> {
        let unfit = |reason: String, help: &'static str| {
            Err(ExportError::Unfit { path: output.to_owned(), reason, help })
        };
        if output == OsStr::new("-") {
            let help = "name a directory; for one named `-`, write `./-`";
            return unfit("an export is a directory and cannot go to standard output".to_owned(), help);
        }
        match output.symlink_metadata() {
            Ok(found) => {
                return Err(ExportError::Exists { path: output.to_owned(), what: what(output, &found) });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // The name is too long, or the parent is a file or may not be searched.
            Err(error) => return Err(ExportError::write(output)(error)),
        }
        let Some(name) = output.file_name() else {
            let help = "name a directory that does not exist yet, in one that does";
            return unfit(format!("`{}` does not name a new directory", output.display()), help);
        };
        let parent = match output.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if let Err(error) = parent.metadata() {
            if error.kind() != ErrorKind::NotFound {
                return Err(ExportError::write(parent)(error));
            }
            let shown = parent.display();
            if let Ok(target) = parent.read_link() {
                let reason = format!("`{shown}` is a link to `{}`, which does not exist", target.display());
                return unfit(reason, "create that directory, or name another one");
            }
            let reason = format!("the directory `{shown}` for `{}` does not exist", name.display());
            return unfit(reason, "create it first, or check the path");
        }
        if let Some((whose, dir)) = inside(parent, plan) {
            let reason = format!("`{}` is inside {whose} directory `{}`", output.display(), dir.display());
            return unfit(reason, "choose an output outside of it");
        }
        // `parent.join(name)` drops a trailing `/` or `/.`, which would make renaming fail.
        let mode = plan.base().dir.metadata().map_or(0o777, |metadata| metadata.mode() & 0o777);
        Ok(Self { output: parent.join(name), parent: parent.to_owned(), mode: mode | 0o700 })
    }

    /// Refuses an export that does not fit on the disk.
    pub(super) fn check_space(&self, needed: u64) -> Result<(), ExportError> {
        let parent = &self.parent;
        let system = rustix::fs::statvfs(parent).map_err(|error| ExportError::write(parent)(error.into()))?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        // File systems in user space may report a size of 0, and so do virtual ones, which refuse the directory later.
        if system.f_blocks > 0 && free < needed {
            return Err(ExportError::Space { path: parent.clone(), needed, free });
        }
        Ok(())
    }

    /// Explains why no directory could be created in the parent, which exists.
    pub(super) fn refused(&self, error: io::Error) -> ExportError {
        if error.kind() == ErrorKind::NotFound && self.parent.is_dir() {
            let path = self.parent.clone();
            let reason = format!("`{}` is a virtual file system, which takes no directories", path.display());
            return ExportError::Unfit { path, reason, help: "choose a directory on a disk" };
        }
        ExportError::write(&self.parent)(error)
    }
}

/// What kind of file is at the output's path.
fn what(path: &Path, found: &fs::Metadata) -> &'static str {
    match path.metadata() {
        Err(_) if found.is_symlink() => "a broken link",
        Ok(target) if target.is_dir() => "a directory",
        _ if found.is_file() => "a file",
        _ => "not a directory",
    }
}

/// The base's or donor's directory that contains this directory.
fn inside<'p>(parent: &Path, plan: &'p Plan) -> Option<(&'static str, &'p Path)> {
    let parent = parent.canonicalize().ok()?;
    let base = std::iter::once(("the model", plan.base().dir.as_path()));
    let donors = plan.donors().iter().map(|donor| ("the donor", donor.weights.path.as_path()));
    { base }.chain(donors).find(|(_, dir)| {
        let whole = dir.canonicalize();
        whole.is_ok_and(|whole| whole.is_dir() && parent.starts_with(whole))
    })
}
