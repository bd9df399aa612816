//! Transport: connections, routes, and the bodies of requests and responses. Computes nothing.

mod access_log;
mod completions;
mod headers;
mod listen;
mod models;
mod page;
mod router;
mod run_blocking;
mod sse;
mod status;
mod tokens;

pub(crate) use listen::Address;
pub(super) use listen::Listener;
pub(super) use router::router;
