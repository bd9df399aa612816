//! A directory of directories that are expensive to create. Each appears complete or not at all, and only one process
//! creates it.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::process::print;

/// The outer directory.
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    /// Opens the store at `root` and creates it if necessary.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        fs::create_dir_all(root).with_context(|| format!("{}: cannot be created", root.display()))?;
        let root = root.canonicalize().with_context(|| format!("{}: cannot be opened", root.display()))?;
        Ok(Self { root })
    }

    /// The path of the directory with this name, which may not exist yet.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Locks the store; waits if another process holds the lock. Dropping the value or ending the process unlocks it.
    pub(crate) fn lock(&self) -> Result<File> {
        let path = self.root.join(".lock");
        let cannot = || format!("{}: cannot be locked", path.display());
        let file = File::create(&path).with_context(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                print(&format!("waiting for another task that uses {}", self.root.display()));
                file.lock().with_context(cannot)?;
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        Ok(file)
    }

    /// Calls `fill` on a temporary directory and renames it when that succeeds. Call it under the lock: it removes the
    /// temporary directory of an interrupted process.
    pub(crate) fn make(&self, name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let partial = self.root.join(".partial");
        if partial.exists() {
            fs::remove_dir_all(&partial)
                .with_context(|| format!("{}: cannot be removed", partial.display()))?;
        }
        fs::create_dir(&partial).with_context(|| format!("{}: cannot be created", partial.display()))?;
        fill(&partial)?;
        let folder = self.folder(name);
        fs::rename(&partial, &folder).with_context(|| format!("{}: cannot be created", folder.display()))
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_directory_appears_only_when_it_is_complete() -> Result<()> {
        let root = std::env::temp_dir().join(format!("xtask-store-{}", std::process::id()));
        let store = Store::open(&root)?;
        let _lock = store.lock()?;
        let interrupted = store.make("it", |folder| {
            fs::write(folder.join("half"), "")?;
            bail!("interrupted")
        });
        assert!(interrupted.is_err() && !store.folder("it").exists());
        store.make("it", |folder| Ok(fs::write(folder.join("whole"), "")?))?;
        assert!(store.folder("it").join("whole").exists() && !store.folder("it").join("half").exists());
        Ok(fs::remove_dir_all(root)?)
    }
}
