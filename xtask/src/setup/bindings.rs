//! `bindings.rs`: bindgen over the headers of mlx-c, with our half-precision declarations appended.
//!
//! Uses the wheel `libclang` even if the system has a libclang, so that every machine gets the same bindings.
//! `LIBCLANG_PATH` overrides it.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{machine, make};
use crate::{
    cargo::cargo,
    process::{capture, print},
    wheel::Wheel,
};

const HALF: &str = include_str!("../../mlx/half.rs");
const PROGRAM: &str = include_str!("../bin/mlx-bindings.rs");

/// Excludes mlx-c's half-precision types, which differ between processors, and the headers that they need.
const CLANG_FLAGS: &str = "-DMLX_HALF_H";

const LIBCLANG: Wheel = Wheel {
    package: "libclang",
    version: "18.1.1",
    sha256: &[
        "c533091d8a3bbf7460a00cb6c1a71da93bffe148f172c7d03b1c31fbf8aa2a0b",
        "54dda940a4a0491a9d1532bf071ea3ef26e6dbaf03b5000ed94dd7174e8f9592",
    ],
};

/// Everything that determines the bindings, apart from mlx-c.
pub(super) const INGREDIENTS: &[&str] = &[HALF, PROGRAM, CLANG_FLAGS, LIBCLANG.version];

/// Writes `out/bindings.rs` in `folder`.
pub(super) fn generate(mlx_c: &Path, folder: &Path) -> Result<()> {
    let wheel = folder.join("libclang");
    let libclang = if let Some(path) = env::var_os("LIBCLANG_PATH") {
        PathBuf::from(path)
    } else {
        print(&format!("setup: fetching {} {}", LIBCLANG.package, LIBCLANG.version));
        LIBCLANG.unpack(&wheel)?;
        wheel.join(format!("libclang-{}.data/platlib/clang/native", LIBCLANG.version))
    };
    let bindings = make(folder, "out")?.join("bindings.rs");
    print("setup: compiling bindgen and writing the bindings");
    capture(
        cargo()
            .args(["run", "--quiet", "--package=xtask", "--features=bindings", "--bin=mlx-bindings"])
            // bindgen runs for one second; compiling it without optimization saves most of a minute.
            .args(["--config", "profile.dev.package.'*'.opt-level=0", "--"])
            .args([mlx_c, &bindings])
            .env("LIBCLANG_PATH", libclang)
            .env("BINDGEN_EXTRA_CLANG_ARGS", clang_arguments()?),
    )?;
    append(&bindings, HALF)?;
    if wheel.exists() {
        fs::remove_dir_all(&wheel).with_context(|| format!("{}: cannot be removed", wheel.display()))?;
    }
    Ok(())
}

/// The wheel has no builtin headers (`stddef.h` and others), so the C++ compiler's are used.
fn clang_arguments() -> Result<String> {
    let folder = capture(machine::compiler().arg("-print-file-name=include"))?;
    Ok(format!("{CLANG_FLAGS} -isystem '{}'", folder.trim()))
}

fn append(path: &Path, text: &str) -> Result<()> {
    fs::OpenOptions::new()
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("{}: cannot be written", path.display()))
}
