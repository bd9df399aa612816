//! mlxcel runs MLX language models and operates on their weights while they load.
//!
//! It is a two-phase compiler with a model runner behind it. Phase one reads a YAML file, `config.json` and
//! safetensors headers, never a weight, and produces a [`Plan`]; phase two executes the plan while loading.
//!
//! ```text
//! surgery.yaml ──parse──▶ Node ──lower──▶ Operation ───────┐
//!                       (spanned tree)    (typed)          │
//! config.json + headers ──▶ TensorIndex ──sanitize──▶ ─────┼─ plan ─▶ Plan ──explain──▶ text · JSON · SARIF · GitHub
//! donor headers ──▶ Donor ─────────────────────────────────┘   │
//!                                                              ▼
//!                                       execute: one Program per edited tensor, tile by tile
//!                                              │                              │
//!                            export: new checkpoint directory     WeightMap (MLX) ─precision─▶ model ─▶ tokens ─▶ text
//! ```
//!
//! The modules stand in the order of that picture, and each uses only modules above it.

pub mod diagnostic;
pub mod checkpoint;
pub mod surgery;
pub mod plan;
pub mod execute;

#[cfg(feature = "mlx")]
mod mlx;
#[cfg(feature = "mlx")]
pub mod weights;
#[cfg(feature = "mlx")]
pub mod nn;
#[cfg(feature = "mlx")]
pub mod model;
#[cfg(feature = "mlx")]
pub mod load;
#[cfg(feature = "mlx")]
pub mod generate;
#[cfg(feature = "mlx")]
pub mod serve;

pub mod cli;
pub mod command;

#[cfg(all(feature = "mlx", target_os = "linux", target_arch = "x86_64"))]
#[doc(hidden)]
pub use mlx::sgemm;

pub use checkpoint::Checkpoint;
pub use diagnostic::{Code, Diagnostic, Severity};
pub use plan::{Plan, plan};
pub use surgery::SurgeryFile;

/// There are no products to take over without MLX, or on other systems.
#[cfg(not(all(feature = "mlx", target_os = "linux", target_arch = "x86_64")))]
#[doc(hidden)]
#[macro_export]
macro_rules! export_sgemm {
    () => {};
}
