//! `mlxcel generate`.

use super::Outcome;
use crate::cli::GenerateArgs;

pub(super) fn run(args: &GenerateArgs) -> Outcome {
    todo!()
}
