//! `mlxcel serve` over real connections.

mod answers;
mod concurrency;
mod errors;
mod identity;
mod misbehaving_clients;
mod server;
mod shutdown;
