//! `cargo xtask bench`: what planning and executing cost, as parts of what memory does in the same run.

use anyhow::Result;

use crate::{
    cargo::cargo,
    process::{run, say},
};

/// Runs the benches of headers, planning and execution, which need no MLX. Each prints a table.
pub(crate) fn bench() -> Result<()> {
    for (title, bench) in [
        ("Planning: the reader of headers against the `safetensors` crate's", "headers"),
        ("Planning: opening and planning, by tensors and operations", "plan"),
        ("Executing: against a plain parallel copy of the same bytes", "execute"),
    ] {
        say(&format!("\n{title}\n"));
        run(cargo().args(["bench", "--package", "mlxcel", "--no-default-features", "--bench", bench]))?;
    }
    Ok(())
}
