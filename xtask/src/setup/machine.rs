//! Requirements: a processor and a C library that libmlx supports, and three tools. The error for a missing tool contains
//! the command that installs it.

use std::{env, os::unix::fs::MetadataExt, path::Path, process::Command};

use anyhow::{Result, bail};

use crate::process::{answers, capture};

/// The oldest glibc that `libmlx.so` supports.
const GLIBC: (u32, u32) = (2, 35);

/// Refuses machines that libmlx does not support.
pub(super) fn supported() -> Result<()> {
    if !cfg!(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )) {
        bail!(
            "MLX runs on macOS and on Linux with glibc (x86-64, aarch64), not on {} {}; \
             run `cargo build --no-default-features` to build all `surgery` commands without MLX",
            env::consts::OS,
            env::consts::ARCH
        );
    }
    Ok(())
}

/// Fails with everything that is missing for the build.
pub(super) fn equipped() -> Result<()> {
    let mut missing = Vec::new();
    if !answers(compiler().arg("--version")) {
        missing.push(("a C++ compiler", ["g++", "gcc-c++", "gcc-c++", "gcc"]));
    } else if !answers(Command::new("ar").arg("--version")) {
        missing.push(("the archiver `ar`", ["binutils"; 4]));
    }
    if !answers(Command::new("python3").args(["-m", "pip", "--version"])) {
        missing.push(("Python 3 with pip", ["python3-pip", "python3-pip", "python3-pip", "python-pip"]));
    }
    let mut lines: Vec<String> = missing
        .into_iter()
        .map(|(what, packages)| format!("{what} is missing; {}", remedy(packages)))
        .collect();
    lines.extend(old_glibc());
    if lines.is_empty() { Ok(()) } else { bail!("{}", lines.join("\nerror: ")) }
}

/// The C++ compiler: `CXX`, which may hold arguments, or the system's.
pub(super) fn compiler() -> Command {
    let words = env::var("CXX").unwrap_or_default();
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("c++"));
    command.args(words);
    command
}

fn old_glibc() -> Option<String> {
    let text = capture(Command::new("getconf").arg("GNU_LIBC_VERSION")).ok()?;
    let found = glibc(&text)?;
    (found < GLIBC).then(|| {
        format!(
            "glibc {}.{} is too old, libmlx needs {}.{}; upgrade to Debian 12, Ubuntu 22.04, Fedora 36 or newer",
            found.0, found.1, GLIBC.0, GLIBC.1
        )
    })
}

/// Parses `glibc 2.36`.
fn glibc(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix("glibc ")?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The command that installs a package, given its names for apt, dnf, zypper and pacman.
pub(super) fn remedy(packages: [&str; 4]) -> String {
    let managers = [
        ("apt-get", "install --yes"),
        ("dnf", "install --assumeyes"),
        ("zypper", "install --no-confirm"),
        ("pacman", "--sync --noconfirm"),
    ];
    let sudo = if root() { "" } else { "sudo " };
    managers
        .iter()
        .zip(packages)
        .find(|((manager, _), _)| Path::new("/usr/bin").join(manager).exists())
        .map_or_else(
            || format!("install `{}` (its name on Debian)", packages[0]),
            |((manager, verb), package)| format!("run `{sudo}{manager} {verb} {package}`"),
        )
}

fn root() -> bool {
    Path::new("/proc/self").metadata().is_ok_and(|process| process.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_glibc_are_compared_as_numbers() {
        assert_eq!(glibc("glibc 2.36\n"), Some((2, 36)));
        assert!(glibc("glibc 2.4").is_some_and(|version| version < GLIBC));
        assert_eq!(glibc("musl 1.2"), None);
    }
}
