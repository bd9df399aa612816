//! The `mlxcel` program: parses the command line, runs the command, ends with its exit code.

use clap::Parser;
use mlxcel::cli::Cli;
use mlxcel::command;

fn main() {
    command::ignore_file_size();
    let exit = match Cli::try_parse().and_then(Cli::checked) {
        Ok(cli) => command::run(cli.command),
        Err(error) => command::refuse(error),
    };
    exit.end()
}
