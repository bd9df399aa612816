//! Everything that is seen from outside: one binary, one module a topic.

mod accepted;
mod bad_input_variants;
mod ci;
mod circles;
mod cli_check;
mod cli_diff;
mod cli_export;
mod cli_meta;
mod cli_plan;
mod closed_stdout;
mod conformance;
mod diagnostics;
mod docs;
mod english;
mod execute;
mod export_ends;
#[cfg(all(feature = "mlx", target_os = "linux", target_arch = "x86_64"))]
mod exported_symbols;
#[cfg(feature = "mlx")]
mod families;
mod fixture;
#[cfg(feature = "mlx")]
mod generate;
mod hostile;
mod layering;
mod library;
#[cfg(feature = "mlx")]
mod loading;
mod near_paths;
mod paths;
mod planning;
mod program;
mod refused;
mod sarif;
mod schema;
#[cfg(feature = "mlx")]
mod score;
#[cfg(feature = "mlx")]
mod serve;
mod shutdown;
mod sparse;
mod terminal_output;
#[cfg(feature = "mlx")]
mod vision_language;
