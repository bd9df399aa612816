//! Runs Cargo and queries the workspace.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::capture;

/// The directory of the workspace's `Cargo.toml`.
pub(crate) fn checkout() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// The Cargo that runs xtask, in the repository's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(checkout());
    command
}

/// Cargo's target directory.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let metadata = metadata(&["--no-deps"])?;
    Ok(metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?.into())
}

/// The `src` directory of a dependency, which Cargo fetches if necessary.
pub(crate) fn sources_of(name: &str, version: &str) -> Result<PathBuf> {
    let metadata = metadata(&[])?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == name && package["version"] == version);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.with_context(|| format!("the workspace does not depend on {name} {version}"))?;
    Ok(Path::new(manifest).with_file_name("src"))
}

fn metadata(arguments: &[&str]) -> Result<Value> {
    let text = capture(cargo().args(["metadata", "--format-version=1"]).args(arguments))?;
    serde_json::from_str(&text).context("`cargo metadata` did not write JSON")
}
