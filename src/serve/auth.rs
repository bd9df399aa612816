//! [`Keys`]: who may ask. Keys are compared by their hashes, in a time that tells nothing of them.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The keys that are taken; none takes everybody.
#[derive(Clone, Default)]
pub struct Keys {
    hashes: Vec<[u8; 32]>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} keys", self.hashes.len())
    }
}

impl Keys {
    /// One key a line; empty lines are none.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let keys = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Self { hashes: keys.map(|key| Sha256::digest(key).into()).collect() }
    }

    /// These keys and those.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.hashes.extend(others.hashes);
        self
    }

    /// Whether everybody is taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Whether a request may be answered: with a key as `Bearer`, or as the password of `Basic`, which is what a
    /// browser can be asked for.
    pub(super) fn admit(&self, headers: &HeaderMap) -> bool {
        if self.is_empty() {
            return true;
        }
        let Some(given) = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
            return false;
        };
        let (scheme, credentials) = given.split_once(' ').unwrap_or_default();
        if scheme.eq_ignore_ascii_case("bearer") {
            return self.contains(credentials.trim().as_bytes());
        }
        if scheme.eq_ignore_ascii_case("basic")
            && let Ok(pair) = BASE64_STANDARD.decode(credentials.trim())
            && let Some(colon) = pair.iter().position(|byte| *byte == b':')
        {
            return self.contains(&pair[colon + 1..]);
        }
        false
    }

    fn contains(&self, key: &[u8]) -> bool {
        let hash = Sha256::digest(key);
        let any = self.hashes.iter().fold(Choice::from(0), |any, known| any | known.ct_eq(hash.as_slice()));
        any.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(keys: &Keys, authorization: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, authorization.parse().unwrap());
        keys.admit(&headers)
    }

    #[test]
    fn a_key_opens_in_either_scheme() {
        let keys = Keys::of("one\n\n two \n").and(Keys::of("three"));
        for key in ["one", "two", "three"] {
            assert!(admits(&keys, &format!("Bearer {key}")) && admits(&keys, &format!("bearer {key}")));
            let pair = BASE64_STANDARD.encode(format!("anybody:{key}"));
            assert!(admits(&keys, &format!("Basic {pair}")));
        }
    }

    #[test]
    fn nothing_else_does() {
        let keys = Keys::of("one");
        for wrong in ["Bearer", "Bearer ", "Bearer onee", "Bearer on", "one", "Basic one", "Digest one", ""] {
            assert!(!admits(&keys, wrong), "{wrong}");
        }
        assert!(!keys.admit(&HeaderMap::new()));
        assert!(Keys::of("\n").admit(&HeaderMap::new()));
    }

    #[test]
    fn keys_are_not_shown() {
        assert_eq!(format!("{:?}", Keys::of("secret")), "1 keys");
    }
}
