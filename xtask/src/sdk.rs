//! Tests of the built program with Python clients, each in its own virtual environment.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    cargo::{checkout, target_folder},
    process::{capture, run},
    store::Store,
};

/// Runs the tests with OpenAI's SDK, and schemathesis on the OpenAPI document, against the release build.
pub(crate) fn test_with_the_sdk() -> Result<()> {
    let target = target_folder()?;
    for test in ["tests/sdk/test_openai.py", "tests/interface/test_interface.py"] {
        let requirements = Path::new(test).with_file_name("requirements.txt");
        let python = environment(&requirements)?;
        run(Command::new(python).current_dir(checkout()).arg(test).arg(target.join("release/mlxcel")))?;
    }
    Ok(())
}

/// The Python of a virtual environment with the requirements of a file installed.
fn environment(requirements: &Path) -> Result<PathBuf> {
    let store = Store::open(&target_folder()?.join("sdk"))?;
    let requirements = checkout().join(requirements);
    let wanted = fs::read_to_string(&requirements).with_context(|| requirements.display().to_string())?;
    let name = wanted.trim().replace("==", "-");
    let python = store.folder(&name).join("bin/python");
    let _lock = store.lock()?;
    if !python.is_file() {
        // A virtual environment cannot be moved, so it is created in its final directory.
        let folder = store.folder(&name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("{}: cannot be removed", folder.display()))?;
        }
        capture(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        let installed = capture(Command::new(&python).args(install).arg(&requirements));
        if installed.is_err() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("{}: cannot be removed", folder.display()))?;
        }
        installed.with_context(|| format!("pip could not install {name}"))?;
    }
    Ok(python)
}
