//! The `mlxcel` program: parses the command line, runs the command, ends with its exit code.

use clap::Parser;
use mlxcel::cli::Cli;
use mlxcel::command::{self, Exit};

mlxcel::export_sgemm!();

fn main() {
    command::ignore_file_size();
    command::with_stack(run).end()
}

// What it needs of the stack must not be taken before there is one.
#[inline(never)]
fn run() -> Exit {
    match Cli::try_parse().and_then(Cli::checked) {
        Ok(cli) => command::run(cli.command),
        Err(error) => command::refuse(error),
    }
}
