//! The server: OpenAI's interface to a model in memory, and always clear which weights answer.
//!
//! ```text
//! connection ─ listen ─▶ router (key, origin, readiness) ─▶ request ─ prepare ─▶ engine ─ events ─▶ reply (JSON or SSE)
//! ```
//!
//! The plan is made and the files beside the weights are read before the port is bound; weights are loaded afterwards,
//! on the engine's thread, and everything but `/health` and `/metrics` answers 503 until they are there. Handlers
//! never touch a tensor; the engine never sees a text.

mod app;
mod auth;
mod engine;
mod error;
mod guide;
mod identity;
mod listen;
mod metrics;
mod openapi;
mod page;
mod prepare;
mod reply;
mod request;
mod router;
mod service;
mod texts;

pub use auth::Keys;
pub use identity::{Identity, Surgery};
pub use listen::Address;
pub use service::{Ended, Ready, Service, Settings};
pub use texts::Texts;
