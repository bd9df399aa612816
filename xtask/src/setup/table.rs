//! `.mlx/cargo.toml`, which `.cargo/config.toml` includes. It replaces the output of `mlx-sys`'s build script.
//!
//! Its paths are absolute, so each checkout has its own, which is not committed.

use std::{env, fs, path::Path};

use anyhow::{Context, Result};

use super::cache::Cache;
use crate::cargo::checkout;

/// Writes the table if it changed.
pub(super) fn write(cache: &Cache) -> Result<()> {
    let folder = checkout().join(".mlx");
    let path = folder.join("cargo.toml");
    let text = table(&cache.libmlx(), &cache.libmlxc(), &cache.out());
    if fs::read_to_string(&path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    let partial = folder.join("cargo.toml.partial");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&partial, text))
        .and_then(|()| fs::rename(&partial, &path))
        .with_context(|| format!("{}: cannot be written", path.display()))
}

/// `lib_dir` is not a key of Cargo, so Cargo passes it to our build script as `DEP_MLX_LIB_DIR`.
fn table(libmlx: &Path, libmlxc: &Path, out: &Path) -> String {
    let (libmlx, libmlxc, out) = (quoted(libmlx), quoted(libmlxc), quoted(out));
    format!(
        "# Written by `cargo xtask setup`.\n\
         [target.{}-unknown-linux-gnu.mlx]\n\
         rustc-link-search = [{libmlxc}, {libmlx}]\n\
         rustc-link-lib = [\"static=mlxc\", \"dylib=mlx\", \"dylib=stdc++\"]\n\
         rustc-env = {{ OUT_DIR = {out} }}\n\
         lib_dir = {libmlx}\n",
        env::consts::ARCH,
    )
}

/// A path as a TOML string; TOML's basic strings have the escapes of JSON.
fn quoted(path: &Path) -> String {
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_paths_are_quoted() {
        assert_eq!(quoted(Path::new(r#"/home/a "b"\c"#)), r#""/home/a \"b\"\\c""#);
    }
}
