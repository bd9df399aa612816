//! `cargo xtask bench`: the speed of planning and executing, relative to memory in the same run.

use anyhow::Result;

use crate::{
    cargo::cargo,
    process::{print, run},
};

/// Runs the benchmarks of headers, planning and execution, which need no MLX. Each prints a table.
pub(crate) fn bench() -> Result<()> {
    for (title, bench) in [
        ("Headers: mlxcel's reader against the `safetensors` crate's", "headers"),
        ("Planning: opening and planning, by number of tensors and operations", "plan"),
        ("Executing: relative to a plain parallel copy of the same bytes", "execute"),
    ] {
        print(&format!("\n{title}\n"));
        run(cargo().args(["bench", "--package", "mlxcel", "--no-default-features", "--bench", bench]))?;
    }
    Ok(())
}
