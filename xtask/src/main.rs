//! Project tasks: `cargo xtask help`.
//!
//! A package of its own with few dependencies, because it is what a newcomer compiles first, and it must build where
//! MLX is not set up yet. It never links MLX.

mod arguments;
mod process;
mod setup;
mod smollm2;
mod store;
mod wheel;

use std::{path::PathBuf, process::ExitCode};

use arguments::Task;

fn main() -> ExitCode {
    match arguments::parse(std::env::args().skip(1)).and_then(perform) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Help => {
            process::say(arguments::HELP);
            Ok(())
        }
        Task::Setup => setup::setup(),
        Task::Smollm2 => smollm2::smollm2(),
    }
}

/// The folder that holds the workspace's `Cargo.toml`.
fn checkout() -> PathBuf {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    package.parent().map(PathBuf::from).unwrap_or(package)
}
