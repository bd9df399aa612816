//! SHA-256 in hexadecimal.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The SHA-256 of bytes in lowercase hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
