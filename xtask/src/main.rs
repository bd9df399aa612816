//! Project tasks: `cargo xtask help`.
//!
//! A separate package with few dependencies: a new contributor compiles it first, and it must build before MLX is set up.
//! It never links MLX.

mod arguments;
mod bench;
mod cargo;
mod demo;
mod hash;
mod process;
mod sdk;
mod setup;
mod smollm2;
mod store;
mod test;
mod wheel;

use std::process::ExitCode;

use arguments::Task;

fn main() -> ExitCode {
    match arguments::parse(std::env::args().skip(1)).and_then(perform) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::print(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Help => {
            process::print(arguments::HELP);
            Ok(())
        }
        Task::Setup => setup::setup(),
        Task::Demo => demo::demo(),
        Task::Bench => bench::bench(),
        Task::Test { real: false } => test::on_fixtures(),
        Task::Test { real: true } => test::on_a_real_model(),
        Task::Smollm2 => smollm2::smollm2(),
    }
}
