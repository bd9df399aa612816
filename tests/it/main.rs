//! Everything that is seen from outside: one binary, one module a topic.

mod accepted;
mod ci;
mod cli_about;
mod cli_check;
mod cli_diff;
mod cli_export;
mod cli_plan;
mod conformance;
mod diagnostics;
mod docs;
mod ends;
mod execute;
mod export_ends;
#[cfg(all(feature = "mlx", target_os = "linux", target_arch = "x86_64"))]
mod exported_symbols;
#[cfg(feature = "mlx")]
mod families;
#[cfg(feature = "mlx")]
mod generate;
mod hostile;
mod layering;
#[cfg(feature = "mlx")]
mod loading;
mod looks;
mod near_paths;
mod outlets;
mod paths;
mod planning;
mod program;
mod refused;
mod relatives;
mod sarif;
mod schema;
#[cfg(feature = "mlx")]
mod serve;
#[cfg(feature = "mlx")]
mod score;
mod sparse;
mod stage;
#[cfg(feature = "mlx")]
mod vision_language;
