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
pub(crate) use partial::{NewFile, clear_leftovers};
pub(crate) use publish::write;
pub use publish::{Exported, export};
pub use stop::Stop;
pub(crate) use stop::Stopped;
