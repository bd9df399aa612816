//! [`random_id`]: ids of requests, responses and tool calls.

use std::hash::{BuildHasher, Hasher, RandomState};

/// 96 random bits in hex. The standard library seeds each `RandomState` differently, which suffices for ids that need
/// not be secret.
pub(super) fn random_id() -> String {
    let bits = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:08x}", bits(), bits() >> 32)
}
