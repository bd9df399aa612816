//! The official Python SDK, in an environment of its own, against the built program.

use std::{fs, process::Command};

use anyhow::{Context, Result};

use crate::{
    cargo::{checkout, target_folder},
    process::{capture, run},
    store::Store,
};

const REQUIREMENTS: &str = "tests/sdk/requirements.txt";
const TESTS: &str = "tests/sdk/test_openai.py";

/// Runs the tests in `tests/sdk` on the release build.
pub(crate) fn test_with_the_sdk() -> Result<()> {
    let target = target_folder()?;
    let store = Store::open(&target.join("sdk"))?;
    let wanted = fs::read_to_string(checkout().join(REQUIREMENTS)).context(REQUIREMENTS)?;
    let name = wanted.trim().replace("==", "-");
    let python = store.folder(&name).join("bin/python");
    let lock = store.lock()?;
    if !python.is_file() {
        // An environment cannot be moved after it was made, so it is made where it stays.
        let folder = store.folder(&name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("{}: cannot be removed", folder.display()))?;
        }
        capture(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        let installed = capture(Command::new(&python).args(install).arg(checkout().join(REQUIREMENTS)));
        if installed.is_err() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("{}: cannot be removed", folder.display()))?;
        }
        installed.context("pip could not install the SDK")?;
    }
    drop(lock);
    run(Command::new(python).current_dir(checkout()).arg(TESTS).arg(target.join("release/mlxcel")))
}
