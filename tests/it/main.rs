//! Everything that is seen from outside: one binary, one module a topic.

mod conformance;
#[cfg(feature = "mlx")]
mod families;
mod layering;
mod sparse;
