//! One file a command. Commands are the only place that prints; each says by its exit code how it ended.

mod about;
mod bar;
mod check;
#[cfg(feature = "mlx")]
mod compare;
mod diff;
mod exit;
mod explain;
mod export;
#[cfg(feature = "mlx")]
mod generate;
mod interrupt;
mod keys;
#[cfg(feature = "mlx")]
mod load_error;
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

pub use exit::Exit;
pub use interrupt::ignore_file_size;
pub use refuse::refuse;
pub use threads::with_stack;

use crate::cli::{Command, SurgeryCommand};

/// How a command ended, or why it could not run to its end (exit code 1).
pub type Outcome = miette::Result<Exit>;

/// Runs a command to its end.
#[must_use]
pub fn run(command: Command) -> Exit {
    let outcome = threads::start().and_then(|()| carry_out(command));
    outcome.unwrap_or_else(|report| {
        output::stderr(&format!("{report:?}\n"));
        Exit::Failed
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
