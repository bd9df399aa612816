//! mlxcel runs MLX language models and operates on their weights while they load.
//!
//! The crate is first a program. As a library it plans surgery files and executes plans, without MLX: [`SurgeryFile`] and
//! [`Checkpoint`] are read, [`plan()`] makes a [`Plan`] of them, and [`Executor`] or [`export`] carries it out. Everything
//! else is private.
//!
//! ```
//! use std::path::Path;
//!
//! use mlxcel::{Checkpoint, Executor, SurgeryFile, plan};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let yaml = b"version: 1\noperations:\n- {op: scale, pattern: '*.mlp.down_proj.weight', factor: 0.5}\n";
//! let file = SurgeryFile::parse(Path::new("half.yaml"), yaml);
//! let plan = plan(&file, Checkpoint::open(Path::new("fixtures/models/tiny-tales/base"))?)?;
//!
//! let mut executor = Executor::new(&plan)?;
//! for program in plan.programs() {
//!     let mut tensor = vec![0; program.result_bytes() as usize];
//!     executor.run(program, &mut tensor)?; // the edited tensor, as safetensors stores it
//! }
//! let report = executor.finish()?;
//! assert_eq!(report.tensors, plan.programs().len() as u64);
//! # Ok(())
//! # }
//! ```
//!
//! Planning reads YAML, `config.json` and safetensors headers, never a weight:
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
//! The modules are in the order of that picture, and each uses only modules above it.

// Without MLX, nothing uses what only running models needs.
#![cfg_attr(not(feature = "mlx"), expect(unused_imports, reason = "used by modules of feature `mlx`"))]
#![cfg_attr(not(any(feature = "mlx", test)), expect(dead_code, reason = "used by modules of feature `mlx`"))]

mod diagnostic;
mod checkpoint;
mod surgery;
mod plan;
mod execute;

#[cfg(feature = "mlx")]
mod mlx;
#[cfg(feature = "mlx")]
mod weights;
#[cfg(feature = "mlx")]
mod nn;
#[cfg(feature = "mlx")]
mod model;
#[cfg(feature = "mlx")]
mod load;
#[cfg(feature = "mlx")]
mod generate;
#[cfg(feature = "mlx")]
mod serve;

mod cli;
mod command;

pub use checkpoint::{Checkpoint, ReadError, ReadErrorKind, ReadErrors};
pub use diagnostic::{Code, Diagnostic, Label, Severity, Span};
pub use execute::{ExecuteError, Executor, ExportError, Exported, OperationReport, Report, Stop, export};
#[cfg(all(feature = "mlx", target_os = "linux", target_arch = "x86_64"))]
#[doc(hidden)]
pub use mlx::sgemm;
pub use plan::{Plan, Program, Refusal, Summary, plan};
pub use surgery::SurgeryFile;

/// The program.
#[doc(hidden)]
pub use command::main;

/// What this package's own tests, benches and fuzz targets use. It is not part of the interface and may change at any
/// time.
#[doc(hidden)]
pub mod internals {
    pub mod checkpoint {
        pub use crate::checkpoint::{Dtype, Header, Key, Listing, Shard, Weights, byte_length};
    }
    pub mod diagnostic {
        pub use crate::diagnostic::{Look, Source, columns, explain, github, json, page, render, sarif};
    }
    pub mod surgery {
        pub use crate::surgery::{Kind, Matcher, schema};
    }
    pub mod plan {
        pub use crate::plan::render::json::json;
        pub use crate::plan::render::text::{Detail, explain};
        pub use crate::plan::{Action, Region, check, refuse};
    }
    #[cfg(feature = "mlx")]
    pub mod load {
        pub use crate::load::{LoadError, Loaded, Options, load};
    }
    #[cfg(feature = "mlx")]
    pub mod weights {
        pub use crate::weights::{Precision, Progress};
    }
    #[cfg(feature = "mlx")]
    pub mod model {
        pub use crate::model::{Model, run};
    }
}

/// There are no products to take over without MLX, or on other systems.
#[cfg(not(all(feature = "mlx", target_os = "linux", target_arch = "x86_64")))]
#[doc(hidden)]
#[macro_export]
macro_rules! export_sgemm {
    () => {};
}
