//! The cache of set-up: one directory for each combination of versions, sources and processor.

use std::{
    env,
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{LIBMLX, MLX_SYS, bindings, mlxc};
use crate::{hash::sha256, store::Store};

/// A cache directory, which may not exist yet.
pub(super) struct Cache {
    store: Store,
    name: String,
}

impl Cache {
    /// The directory for the current versions and sources.
    pub(super) fn locate() -> Result<Self> {
        let root = root(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
            .context("neither MLXCEL_CACHE nor HOME is set; set MLXCEL_CACHE to a writable directory")?;
        let store = Store::open(&root).context("set MLXCEL_CACHE to a writable directory")?;
        Ok(Self { store, name: name() })
    }

    fn folder(&self) -> PathBuf {
        self.store.folder(&self.name)
    }

    /// Keeps the wheel's layout, because `libmlx.so` finds its BLAS by a relative path.
    pub(super) fn prefix(&self) -> PathBuf {
        self.folder().join("prefix")
    }

    /// The directory of `libmlx.so`.
    pub(super) fn libmlx(&self) -> PathBuf {
        self.prefix().join("mlx/lib")
    }

    /// The directory of `libmlxc.a`.
    pub(super) fn libmlxc(&self) -> PathBuf {
        self.folder().join("lib")
    }

    /// The directory of `bindings.rs`.
    pub(super) fn out(&self) -> PathBuf {
        self.folder().join("out")
    }

    /// Whether the directory exists. It is renamed to its final name only when it is complete.
    pub(super) fn complete(&self) -> bool {
        self.folder().is_dir()
    }

    /// Locks the cache against other set-ups.
    pub(super) fn lock(&self) -> Result<File> {
        self.store.lock()
    }

    /// Creates the directory. Call it under the lock.
    pub(super) fn make(&self, build: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.store.make(&self.name, build)
    }
}

fn root(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    variable("MLXCEL_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("mlxcel")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache/mlxcel")))
}

/// The name contains a hash of everything that determines the directory's content.
fn name() -> String {
    let ingredients: Vec<&str> = mlxc::INGREDIENTS.iter().chain(bindings::INGREDIENTS).copied().collect();
    let hash = &sha256(ingredients.join("\0").as_bytes())[..12];
    format!("mlx-{}-sys-{MLX_SYS}-{}-{hash}", LIBMLX.version, env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: Option<&str>) {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        assert_eq!(root(find), expected.map(PathBuf::from));
    }

    #[test]
    fn the_most_specific_variable_takes_precedence() {
        check(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), ("MLXCEL_CACHE", "/m")], Some("/m"));
        check(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")], Some("/x/mlxcel"));
        check(&[("HOME", "/h")], Some("/h/.cache/mlxcel"));
        check(&[], None);
    }
}
