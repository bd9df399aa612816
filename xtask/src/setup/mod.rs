//! Makes MLX available to Cargo.
//!
//! `mlx-sys` builds MLX only on Apple systems. On other systems a Cargo table can replace the output of its build script, so
//! set-up does the script's work once for all checkouts of a machine:
//!
//! ```text
//! wheel `mlx-cpu` ──▶ prefix/ (libmlx.so, headers) ─┐
//! sources of mlx-c, inside the mlx-sys crate ───────┼─▶ lib/libmlxc.a ─┐
//! xtask/mlx/{shim.cpp, format.h} ───────────────────┘                  ├─▶ .mlx/cargo.toml in the checkout
//! headers of mlx-c ──▶ bindgen + xtask/mlx/half.rs ──▶ out/bindings.rs ┘
//! ```
//!
//! All except the last are in a cache directory, whose name contains a hash of its inputs. It is built under a temporary name
//! and renamed at the end, so an interrupted set-up leaves nothing incomplete. Every run checks the BLAS under `prefix/`,
//! because `OpenBLAS` may be installed or removed later.

mod bindings;
mod blas;
mod cache;
mod machine;
mod mlxc;
mod table;

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::{process::print, wheel::Wheel};
use cache::Cache;

/// The release of `mlx-sys` in Cargo.lock, whose mlx-c is compiled here.
const MLX_SYS: &str = "0.7.0";

/// The release of MLX that `mlx-sys` binds: Apple's own build for Linux.
const LIBMLX: Wheel = Wheel {
    package: "mlx-cpu",
    version: "0.32.2",
    sha256: &[
        "fc5d31b90fc4f457b2f9614ed45651a567d22a6a11a03d114a90a4e10bdd8878",
        "d0f94625588b51a878786dd51cec5617894ce586cf3c94645ce1b64e24c27c0b",
    ],
};

/// `cargo xtask setup`.
pub(crate) fn setup() -> Result<()> {
    if cfg!(target_os = "macos") {
        print("setup: not needed on macOS, where mlx-rs builds MLX");
        return Ok(());
    }
    machine::supported()?;
    let cache = Cache::locate()?;
    let _lock = cache.lock()?;
    if !cache.complete() {
        machine::equipped()?;
        cache.make(build)?;
    }
    let blas = blas::choose(&cache.prefix())?;
    table::write(&cache)?;
    print(&format!("setup: MLX {} is ready, with {blas}", LIBMLX.version));
    Ok(())
}

/// Builds the content of a cache directory.
fn build(folder: &Path) -> Result<()> {
    let prefix = folder.join("prefix");
    print(&format!("setup: fetching {} {}", LIBMLX.package, LIBMLX.version));
    LIBMLX.unpack(&prefix)?;
    blas::keep_reference(&prefix)?;
    let mlx_c = mlxc::sources()?;
    bindings::generate(&mlx_c, folder)?;
    mlxc::compile(&mlx_c, &prefix.join("mlx/include"), &make(folder, "lib")?)
}

fn make(folder: &Path, name: &str) -> Result<std::path::PathBuf> {
    let path = folder.join(name);
    fs::create_dir_all(&path).with_context(|| format!("{}: cannot be created", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_up_builds_the_mlx_sys_that_the_workspace_uses() -> Result<()> {
        let lock = fs::read_to_string(crate::cargo::checkout().join("Cargo.lock"))?;
        assert!(lock.contains(&format!("name = \"mlx-sys\"\nversion = \"{MLX_SYS}\"\n")));
        Ok(())
    }
}
