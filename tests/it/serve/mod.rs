//! `mlxcel serve`, asked over real connections.

mod answers;
mod ends;
mod errors;
mod identity;
mod server;
mod sharing;
mod unruly;
