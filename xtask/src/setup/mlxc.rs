//! mlx-c, MLX's C interface: compiles the sources in the `mlx-sys` crate into `libmlxc.a`.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, bail};

use super::{MLX_SYS, machine};
use crate::{
    cargo,
    process::{capture, print},
};

const SHIM: &str = include_str!("../../mlx/shim.cpp");
const FORMAT: &str = include_str!("../../mlx/format.h");

/// `MLX_HALF_H` is the include guard of mlx-c's half-precision types; shim.cpp has the accessors instead.
const FLAGS: &str = "-std=c++20 -O2 -fPIC -DMLX_HALF_H -c";

/// Everything that determines the archive, apart from mlx-c and libmlx.
pub(super) const INGREDIENTS: &[&str] = &[SHIM, FORMAT, FLAGS];

/// The directory of mlx-c's sources, inside the `mlx-sys` crate.
pub(super) fn sources() -> Result<PathBuf> {
    let folder = cargo::sources_of("mlx-sys", MLX_SYS)?.join("mlx-c");
    if !folder.join("mlx/c/mlx.h").is_file() {
        bail!("{}: the sources of mlx-c are missing", folder.display());
    }
    Ok(folder)
}

/// Compiles mlx-c and the shim into `libmlxc.a` in `folder`.
pub(super) fn compile(mlx_c: &Path, include: &Path, folder: &Path) -> Result<()> {
    let objects = folder.join("objects");
    fs::create_dir(&objects).with_context(|| format!("{}: cannot be created", objects.display()))?;
    let shim = write(&objects.join("shim.cpp"), SHIM)?;
    let format = write(&objects.join("format.h"), FORMAT)?;
    let mut sources = cpp_files(&mlx_c.join("mlx/c"))?;
    sources.push(shim);

    print(&format!("setup: compiling mlx-c ({} files)", sources.len()));
    let object = |source: &Path| objects.join(source.file_name().unwrap_or_default()).with_extension("o");
    in_parallel(&sources, |source| {
        let mut command = machine::compiler();
        command.args(FLAGS.split(' ')).arg(source).arg("-o").arg(object(source));
        command.arg("-include").arg(&format);
        command.arg("-I").arg(include).arg("-I").arg(mlx_c);
        // MLX's messages would otherwise contain source paths of this machine.
        command.arg(joined(&["-ffile-prefix-map=".as_ref(), mlx_c.as_ref(), "/=".as_ref()]));
        capture(&mut command).map(drop)
    })?;
    capture(
        Command::new("ar")
            .arg("crs")
            .arg(folder.join("libmlxc.a"))
            .args(sources.iter().map(|source| object(source))),
    )?;
    fs::remove_dir_all(&objects).with_context(|| format!("{}: cannot be removed", objects.display()))
}

fn write(path: &Path, text: &str) -> Result<PathBuf> {
    fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(path.to_owned())
}

fn joined(parts: &[&std::ffi::OsStr]) -> OsString {
    parts.iter().copied().collect()
}

fn cpp_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{}: cannot be read", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "cpp"));
    files.sort();
    Ok(files)
}

/// Calls `work` for every item, with one thread per processor; stops at the first error.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = work(item) {
                        next.store(items.len(), Ordering::Relaxed);
                        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    }
                }
            });
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_work_handles_every_item_or_returns_an_error() {
        let done = AtomicUsize::new(0);
        let count = |item: &usize| {
            done.fetch_add(*item, Ordering::Relaxed);
            if *item > 100 {
                bail!("too large")
            }
            Ok(())
        };
        assert!(in_parallel(&(1..=100).collect::<Vec<_>>(), count).is_ok());
        assert_eq!(done.load(Ordering::Relaxed), 5050);
        assert!(in_parallel(&[1, 101, 2], count).is_err());
    }
}
