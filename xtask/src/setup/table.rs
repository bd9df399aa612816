//! `.mlx/cargo.toml`, which `.cargo/config.toml` includes: what the build script of `mlx-sys` would have told Cargo.
//!
//! Its paths are absolute, so it is generated for each checkout and never committed.

use std::{env, fs, path::Path};

use anyhow::{Context, Result};

use super::cache::Cache;
use crate::cargo::checkout;

/// Writes the table, unless it already says the same.
pub(super) fn write(cache: &Cache) -> Result<()> {
    let folder = checkout().join(".mlx");
    let path = folder.join("cargo.toml");
    let text = table(&cache.libmlx(), &cache.libmlxc(), &cache.out());
    if fs::read_to_string(&path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    let beside = folder.join("cargo.toml.partial");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&beside, text))
        .and_then(|()| fs::rename(&beside, &path))
        .with_context(|| format!("{}: cannot be written", path.display()))
}

/// `lib_dir` is no key that Cargo knows, so it reaches our build script as `DEP_MLX_LIB_DIR`.
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

/// A path as a string of TOML, whose basic strings have the escapes of JSON.
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
