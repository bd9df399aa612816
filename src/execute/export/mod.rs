//! Streams an edited checkpoint to a new directory: the same shards with the same tensors in the same order, and the
//! other files beside them.
//!
//! Everything is written to a temporary directory beside the output, which gets the output's name when it is complete.
//! Whatever fails before, that directory is removed.

mod error;
mod files;
mod head;
mod header;
mod partial;
mod place;
mod publish;
mod sidecar;
mod splice;
mod staging;
mod stop;
mod writer;

pub use error::ExportError;
pub use partial::{NewFile, clear_leftovers};
pub use publish::{Exported, Unpublished, export, write};
pub use stop::{Stop, Stopped};
