//! `mlx-bindings MLX_C OUTPUT`: the Rust declarations of mlx-c, as the build script of `mlx-sys` would make them.
//!
//! A binary of its own, behind a feature, so that bindgen is compiled only while set-up builds. Where libclang is,
//! and what else it has to know, comes in `LIBCLANG_PATH` and `BINDGEN_EXTRA_CLANG_ARGS`, which bindgen reads itself.

use std::{env, path::PathBuf};

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(mlx_c), Some(output)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("usage: mlx-bindings MLX_C OUTPUT");
    };
    bindgen::builder()
        .rust_target(bindgen::RustTarget::stable(73, 0).map_err(|error| anyhow::anyhow!("{error}"))?)
        .header(mlx_c.join("mlx/c/mlx.h").to_string_lossy())
        .clang_arg(format!("-I{}", mlx_c.display()))
        // Rust knows these two, and lints declarations of them that differ from its own.
        .blocklist_function("malloc")
        .blocklist_function("realloc")
        .generate()
        .context("bindgen could not read the headers of mlx-c")?
        .write_to_file(&output)
        .with_context(|| format!("{}: cannot be written", output.display()))
}
