//! One file a command. Commands are the only place that prints; each says by its exit code how it ended.
//!
//! Codes: 0 fine; 1 a diagnostic of severity error or a failure while running; 2 a wrong command line; 130 Ctrl-C.

mod about;
mod bar;
mod check;
#[cfg(feature = "mlx")]
mod compare;
mod diff;
mod explain;
mod export;
#[cfg(feature = "mlx")]
mod generate;
mod interrupt;
mod keys;
pub mod output;
mod plan;
mod refuse;
mod report;
#[cfg(feature = "mlx")]
mod score;
#[cfg(feature = "mlx")]
mod serve;
#[cfg(feature = "mlx")]
mod session;
mod threads;

use std::process::ExitCode;

pub use refuse::refuse;

use crate::cli::{Command, SurgeryCommand};

/// How a command ended, or why it could not run to its end (exit code 1).
pub type Outcome = miette::Result<ExitCode>;

/// The exit code of a wrong command line.
pub const WRONG_COMMAND_LINE: u8 = 2;

/// The exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// Runs a command to its exit code.
#[must_use]
pub fn run(command: Command) -> ExitCode {
    let outcome = threads::start().and_then(|()| carry_out(command));
    outcome.unwrap_or_else(|report| {
        output::stderr(&format!("{report:?}\n"));
        ExitCode::FAILURE
    })
}

fn carry_out(command: Command) -> Outcome {
    match command {
        Command::Surgery(command) => match command {
            SurgeryCommand::Plan(args) => plan::run(&args),
            SurgeryCommand::Check(args) => check::run(&args),
            SurgeryCommand::Keys(args) => keys::run(&args),
            SurgeryCommand::Export(args) => export::run(&args),
            SurgeryCommand::Diff(args) => diff::run(&args),
            SurgeryCommand::Explain(args) => explain::run(&args),
            SurgeryCommand::Schema => about::schema(),
        },
        Command::Completions { shell } => about::completions(shell),
        Command::Man { command } => about::man(&command),
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

/// The answer of a binary that cannot compute.
#[cfg(not(feature = "mlx"))]
fn needs_mlx(command: &str) -> miette::Report {
    miette::miette!(
        help = "build mlxcel with its default features; the `surgery` commands work without",
        "`{command}` needs MLX, and this binary was built without it"
    )
}
