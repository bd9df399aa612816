//! The BLAS that libmlx uses.
//!
//! The wheel contains the reference implementation, which is about 40 times slower than `OpenBLAS`. libmlx finds it by its
//! file names in `mlx_cpu.libs`. Set-up replaces these files with links to the system's `OpenBLAS`, or to the renamed
//! reference.

use std::{
    fmt, fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::machine;
use crate::process::{capture, print};

/// Prefix of the renamed reference libraries.
const ASIDE: &str = "reference-";

/// Fedora's threaded build first, because `libopenblas.so.0` has no threads there.
const NAMES: [&str; 2] = ["libopenblasp.so.0", "libopenblas.so.0"];

/// The BLAS that libmlx uses.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Blas {
    OpenBlas(PathBuf),
    Reference,
}

impl fmt::Display for Blas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenBlas(path) => write!(f, "OpenBLAS ({})", path.display()),
            Self::Reference => {
                let packages =
                    ["libopenblas0-pthread", "openblas-threads", "libopenblas_pthreads0", "openblas"];
                write!(
                    f,
                    "its slow reference BLAS; for about 40 times the speed, {}, then run `cargo xtask setup` again",
                    machine::remedy(packages)
                )
            }
        }
    }
}

/// Renames the wheel's libraries and links their old names to them.
pub(super) fn keep_reference(prefix: &Path) -> Result<()> {
    for name in libraries(prefix)? {
        let path = folder(prefix).join(&name);
        fs::rename(&path, folder(prefix).join(format!("{ASIDE}{name}")))
            .with_context(|| format!("{}: cannot be renamed", path.display()))?;
        link(&path, Path::new(&format!("{ASIDE}{name}")))?;
    }
    Ok(())
}

/// Links to the best BLAS of this machine.
pub(super) fn choose(prefix: &Path) -> Result<Blas> {
    let Some(openblas) = find() else {
        point_at(prefix, None)?;
        return Ok(Blas::Reference);
    };
    if point_at(prefix, Some(&openblas))? && !loads(prefix) {
        print(&format!("setup: libmlx cannot use {}", openblas.display()));
        point_at(prefix, None)?;
        return Ok(Blas::Reference);
    }
    Ok(Blas::OpenBlas(openblas))
}

/// Links both names to `library`, or each to its reference. Returns whether a link changed.
fn point_at(prefix: &Path, library: Option<&Path>) -> Result<bool> {
    let mut changed = false;
    for name in libraries(prefix)? {
        let path = folder(prefix).join(&name);
        let aside = PathBuf::from(format!("{ASIDE}{name}"));
        let target = library.unwrap_or(&aside);
        if fs::read_link(&path).is_ok_and(|present| present == target) {
            continue;
        }
        link(&path, target)?;
        changed = true;
    }
    Ok(changed)
}

/// Creates or replaces a link atomically, so that a program that starts at the same time finds one of the two.
fn link(path: &Path, target: &Path) -> Result<()> {
    let beside = path.with_extension("partial");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => symlink(target, &beside).and_then(|()| fs::rename(&beside, path)),
    }
    .with_context(|| format!("{}: cannot be linked", path.display()))
}

fn folder(prefix: &Path) -> PathBuf {
    prefix.join("mlx_cpu.libs")
}

/// The hashed names under which libmlx looks for BLAS and LAPACK.
fn libraries(prefix: &Path) -> Result<Vec<String>> {
    let folder = folder(prefix);
    let entries = fs::read_dir(&folder).with_context(|| format!("{}: cannot be read", folder.display()))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>>>()?;
    names.retain(|name| ["libblas-", "liblapack-"].iter().any(|start| name.starts_with(start)));
    names.retain(|name| !name.ends_with(".partial"));
    Ok(names)
}

/// `OpenBLAS` in the usual directories, or as the dynamic linker finds it.
fn find() -> Option<PathBuf> {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let usual = [multiarch.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib"].map(Path::new);
    NAMES.iter().find_map(|name| {
        usual
            .iter()
            .map(|folder| folder.join(name))
            .find(|path| path.exists())
            .or_else(|| known_to_linker(name))
    })
}

fn known_to_linker(name: &str) -> Option<PathBuf> {
    let list =
        ["ldconfig", "/sbin/ldconfig"].iter().find_map(|tool| capture(Command::new(tool).arg("-p")).ok())?;
    list.lines()
        .filter_map(|line| line.trim().split_once(" => "))
        .filter(|(entry, _)| entry.split(' ').next() == Some(name) && entry.contains("64"))
        .map(|(_, path)| PathBuf::from(path))
        .find(|path| path.exists())
}

/// Whether libmlx finds all symbols that it needs: an `OpenBLAS` may be built without LAPACK.
fn loads(prefix: &Path) -> bool {
    let load = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)";
    capture(Command::new("python3").args(["-c", load]).arg(prefix.join("mlx/lib/libmlx.so"))).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_linked_to_another_library_and_back() -> Result<()> {
        let prefix = std::env::temp_dir().join(format!("xtask-blas-{}", std::process::id()));
        fs::create_dir_all(folder(&prefix))?;
        let (blas, other) = (folder(&prefix).join("libblas-1.so.3"), folder(&prefix).join("other.so"));
        fs::write(&blas, "reference")?;
        fs::write(&other, "other")?;
        keep_reference(&prefix)?;

        assert!(point_at(&prefix, Some(&other))? && fs::read_to_string(&blas)? == "other");
        assert!(!point_at(&prefix, Some(&other))?);
        assert!(point_at(&prefix, None)? && fs::read_to_string(&blas)? == "reference");
        Ok(fs::remove_dir_all(prefix)?)
    }
}
