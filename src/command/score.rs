//! `mlxcel score`.

use super::Outcome;
use crate::cli::ScoreArgs;

pub(super) fn run(args: &ScoreArgs) -> Outcome {
    todo!()
}
