//! The program's commands, one file each. Only commands print; the exit code says how a command ended.

mod bar;
mod check;
#[cfg(feature = "mlx")]
mod compare;
mod diff;
mod exit;
mod explain;
mod export;
mod failure;
#[cfg(feature = "mlx")]
mod generate;
mod interrupt;
mod keys;
#[cfg(feature = "mlx")]
mod load_error;
#[cfg(feature = "mlx")]
mod load_session;
mod meta;
mod output;
mod plan;
mod planned;
#[cfg(feature = "mlx")]
mod score;
#[cfg(feature = "mlx")]
mod serve;
mod signals;
mod threads;
mod usage_error;

use clap::Parser as _;

use crate::cli::{Cli, Command, SurgeryCommand};
use exit::Exit;
#[cfg(not(feature = "mlx"))]
use failure::Failure;
use failure::Outcome;

/// The program: parses the command line, runs the command, ends with its exit code.
pub fn main() -> ! {
    signals::ignore_file_size();
    threads::with_stack(parse_and_run).end()
}

// Not inlined: its frame must not be on the stack that `with_stack` may replace.
#[inline(never)]
fn parse_and_run() -> Exit {
    match Cli::try_parse().and_then(Cli::checked) {
        Ok(cli) => run(cli.command),
        Err(error) => usage_error::print(error),
    }
}

fn run(command: Command) -> Exit {
    let outcome = threads::start().and_then(|()| dispatch(command));
    outcome.unwrap_or_else(|failure| {
        output::stderr(&failure.text(output::stderr_look()));
        Exit::Error
    })
}

fn dispatch(command: Command) -> Outcome {
    match command {
        Command::Surgery(command) => match command {
            SurgeryCommand::Plan(args) => plan::run(&args),
            SurgeryCommand::Check(args) => check::run(&args),
            SurgeryCommand::Keys(args) => keys::run(&args),
            SurgeryCommand::Export(args) => export::run(&args),
            SurgeryCommand::Diff(args) => diff::run(&args),
            SurgeryCommand::Explain(args) => explain::run(&args),
            SurgeryCommand::Schema => meta::schema(),
        },
        Command::Completions { shell } => meta::completions(shell),
        Command::Man { command } => meta::man(&command),
        #[cfg(feature = "mlx")]
        Command::Generate(args) => generate::run(&args),
        #[cfg(feature = "mlx")]
        Command::Score(args) => score::run(&args),
        #[cfg(feature = "mlx")]
        Command::Serve(args) => serve::run(&args),
        #[cfg(not(feature = "mlx"))]
        Command::Generate(_) => Err(needs_mlx("generate")),
        #[cfg(not(feature = "mlx"))]
        Command::Score(_) => Err(needs_mlx("score")),
        #[cfg(not(feature = "mlx"))]
        Command::Serve(_) => Err(needs_mlx("serve")),
    }
}

/// The error of a binary that cannot compute.
#[cfg(not(feature = "mlx"))]
fn needs_mlx(command: &str) -> Failure {
    Failure::new(format!("`{command}` needs MLX, and this binary was built without it"))
        .help("build mlxcel with its default features; the `surgery` commands work without them")
}
