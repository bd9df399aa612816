//! `cargo xtask demo`: one small model from `fixtures/`, before and after surgery.

use std::process::Command;

use anyhow::Result;

use crate::{
    cargo::{cargo, checkout, target_folder},
    process::{print, run},
    setup::setup,
};

const MODEL: &str = "fixtures/models/tiny-tales/base";
const SURGERY: &str = "examples/joy.yaml";

/// Sets up MLX, builds, and runs a few commands. Prints each command before it runs.
pub(crate) fn demo() -> Result<()> {
    setup()?;
    run(cargo().args(["build", "--release", "--package", "mlxcel"]))?;

    print("\nA surgery file:");
    run(Command::new("cat").arg(SURGERY).current_dir(checkout()))?;
    print("\nIts plan, for a model of 180,800 parameters that tells stories:");
    run(mlxcel()?.args(["surgery", "plan", SURGERY, "--model", MODEL]))?;
    print("\nThe model without surgery:");
    run(&mut generate(&[])?)?;
    print("\nThe model with the surgery applied while it loads:");
    run(&mut generate(&["--surgery", SURGERY])?)
}

fn generate(surgery: &[&str]) -> Result<Command> {
    let mut command = mlxcel()?;
    command.args(["generate", "--model", MODEL]).args(surgery);
    command.args(["--prompt", "One morning Anna", "--max-tokens", "60", "--temp", "0", "--raw"]);
    Ok(command)
}

fn mlxcel() -> Result<Command> {
    let mut command = Command::new(target_folder()?.join("release/mlxcel"));
    command.current_dir(checkout());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_needs_only_files_of_the_repository() {
        for path in [SURGERY, "fixtures/models/tiny-tales/base/config.json"] {
            assert!(checkout().join(path).is_file(), "{path}");
        }
    }
}
