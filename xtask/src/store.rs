//! A folder of folders that are made at some cost: each appears complete or not at all, and is made by one process.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::process::say;

/// The outer folder.
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    /// Opens the store at `root`, which is made if need be.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        fs::create_dir_all(root).with_context(|| format!("{}: cannot be made", root.display()))?;
        let root = root.canonicalize().with_context(|| format!("{}: cannot be entered", root.display()))?;
        Ok(Self { root })
    }

    /// Where the folder of this name is, or will be.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Waits until no other process changes the store. The lock ends with the value, or with the process.
    pub(crate) fn lock(&self) -> Result<File> {
        let path = self.root.join(".lock");
        let cannot = || format!("{}: cannot be locked", path.display());
        let file = File::create(&path).with_context(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                say(&format!("another task is at work in {}, waiting for it", self.root.display()));
                file.lock().with_context(cannot)?;
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        Ok(file)
    }

    /// Lets `fill` fill a folder beside, and gives it its name when that succeeded. To be called under the lock, so
    /// that what an interrupted process left beside can be thrown away.
    pub(crate) fn make(&self, name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let beside = self.root.join(".partial");
        if beside.exists() {
            fs::remove_dir_all(&beside)
                .with_context(|| format!("{}: cannot be removed", beside.display()))?;
        }
        fs::create_dir(&beside).with_context(|| format!("{}: cannot be made", beside.display()))?;
        fill(&beside)?;
        let folder = self.folder(name);
        fs::rename(&beside, &folder).with_context(|| format!("{}: cannot be named so", folder.display()))
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_folder_appears_only_when_it_is_complete() -> Result<()> {
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
