//! [`Place`]: where an export goes, and why it cannot go there.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::ExportError;
use crate::plan::Plan;

/// A new directory's name, in a directory that is there.
#[derive(Debug)]
pub(super) struct Place {
    /// The directory that it will stand in.
    pub(super) parent: PathBuf,
    /// What it will be called.
    pub(super) output: PathBuf,
    /// Its mode, before the process's mask: the model directory's, but that its owner can write into it.
    pub(super) mode: u32,
}

impl Place {
    /// Refuses what can be refused before anything is read or written.
    pub(super) fn of(output: &Path, plan: &Plan) -> Result<Self, ExportError> {
        let unfit = |reason: String, help: &'static str| {
            Err(ExportError::Unfit { path: output.to_owned(), reason, help })
        };
        if output == OsStr::new("-") {
            let help = "name a directory, or write `./-` for one of this name";
            return unfit("an export is a directory and cannot go to standard output".to_owned(), help);
        }
        match output.symlink_metadata() {
            Ok(found) => {
                return Err(ExportError::Exists { path: output.to_owned(), what: what(output, &found) });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // A name that is too long, a parent that is a file or may not be looked into.
            Err(error) => return Err(ExportError::write(output)(error)),
        }
        let Some(name) = output.file_name() else {
            let help = "name a directory that does not exist yet, and that is made there";
            return unfit(format!("`{}` is no name for a new directory", output.display()), help);
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
                return unfit(reason, "make that directory, or name another one");
            }
            let reason = format!("there is no directory `{shown}` to make `{}` in", name.display());
            return unfit(reason, "make it first, or check the path");
        }
        if let Some((whose, dir)) = inside(parent, plan) {
            let reason = format!("`{}` is inside {whose} directory `{}`", output.display(), dir.display());
            return unfit(
                reason,
                "an export does not become a part of what it is made from: write it elsewhere",
            );
        }
        // A `/` or `/.` behind the name would be in the way once the directory gets it.
        let mode = plan.base().dir.metadata().map_or(0o777, |metadata| metadata.mode() & 0o777);
        Ok(Self { output: parent.join(name), parent: parent.to_owned(), mode: mode | 0o700 })
    }

    /// Refuses to begin what will not fit.
    #[cfg(unix)]
    pub(super) fn check_space(&self, needed: u64) -> Result<(), ExportError> {
        let parent = &self.parent;
        let system = rustix::fs::statvfs(parent).map_err(|error| ExportError::write(parent)(error.into()))?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        // A disk without a size says nothing of what is free: so do file systems in user space, and those of the system
        // itself, which then refuse the directory.
        if system.f_blocks > 0 && free < needed {
            return Err(ExportError::Space { path: parent.clone(), needed, free });
        }
        Ok(())
    }

    /// Where the system does not say what is free, a full disk is noticed when it is full.
    #[cfg(not(unix))]
    pub(super) fn check_space(&self, _needed: u64) -> Result<(), ExportError> {
        Ok(())
    }

    /// Why no directory could be made in the parent, which is there.
    pub(super) fn refused(&self, error: io::Error) -> ExportError {
        if error.kind() == ErrorKind::NotFound && self.parent.is_dir() {
            let path = self.parent.clone();
            let reason =
                format!("no directory can be made in `{}`, which is the system's own", path.display());
            return ExportError::Unfit { path, reason, help: "choose a directory on a disk" };
        }
        ExportError::write(&self.parent)(error)
    }
}

/// What stands where the export should.
fn what(path: &Path, found: &fs::Metadata) -> &'static str {
    match path.metadata() {
        Err(_) if found.is_symlink() => "a link that leads nowhere",
        Ok(target) if target.is_dir() => "a directory",
        _ if found.is_file() => "a file",
        _ => "something else than a directory",
    }
}

/// The base or the donor directory that a directory is part of.
fn inside<'p>(parent: &Path, plan: &'p Plan) -> Option<(&'static str, &'p Path)> {
    let parent = parent.canonicalize().ok()?;
    let base = std::iter::once(("the model", plan.base().dir.as_path()));
    let donors = plan.donors().iter().map(|donor| ("the donor", donor.weights.path.as_path()));
    { base }.chain(donors).find(|(_, dir)| {
        let whole = dir.canonicalize();
        whole.is_ok_and(|whole| whole.is_dir() && parent.starts_with(whole))
    })
}
