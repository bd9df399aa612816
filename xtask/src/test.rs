//! `cargo xtask test`: all tests, on the fixtures or on a real model.

use anyhow::Result;

use crate::{
    cargo::cargo,
    process::{answers, run},
    sdk::test_with_the_sdk,
    setup::setup,
    smollm2::smollm2,
};

/// Runs all tests that need only the repository, including the doc tests.
pub(crate) fn on_fixtures() -> Result<()> {
    setup()?;
    if nextest() {
        run(cargo().args(["nextest", "run", "--workspace"]))?;
        run(cargo().args(["test", "--workspace", "--doc"]))
    } else {
        run(cargo().args(["test", "--workspace", "--no-fail-fast"]))
    }
}

/// Runs the end-to-end tests in `tests/real`, which no other task runs. In release mode, because they compute much.
pub(crate) fn on_a_real_model() -> Result<()> {
    setup()?;
    smollm2()?;
    let mut command = cargo();
    if nextest() {
        command.args(["nextest", "run"])
    } else {
        command.arg("test")
    };
    run(command.args(["--release", "--package", "mlxcel", "--test", "real"]))?;
    test_with_the_sdk()
}

fn nextest() -> bool {
    answers(cargo().args(["nextest", "--version"]))
}
