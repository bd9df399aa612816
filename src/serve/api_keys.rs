//! [`ApiKeys`]: the accepted API keys. Only hashes are kept, and they are compared in constant time.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The accepted API keys; an empty set lets everyone in.
#[derive(Clone, Default)]
pub(crate) struct ApiKeys {
    hashes: Vec<[u8; 32]>,
}

impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} keys", self.hashes.len())
    }
}

impl ApiKeys {
    /// Parses one key per line; empty lines are ignored.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Self {
        let keys = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Self { hashes: keys.map(|key| Sha256::digest(key).into()).collect() }
    }

    /// Adds the keys of another set.
    #[must_use]
    pub(crate) fn union(mut self, others: Self) -> Self {
        self.hashes.extend(others.hashes);
        self
    }

    /// Whether everyone is let in.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Whether these headers have an accepted key: as `Bearer` token, or as `Basic` password, for which browsers
    /// prompt.
    pub(super) fn accepts(&self, headers: &HeaderMap) -> bool {
        if self.is_empty() {
            return true;
        }
        let Some(authorization) = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok())
        else {
            return false;
        };
        let (scheme, credentials) = authorization.split_once(' ').unwrap_or_default();
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

    fn accepts(keys: &ApiKeys, authorization: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, authorization.parse().unwrap());
        keys.accepts(&headers)
    }

    #[test]
    fn a_key_is_accepted_in_either_scheme() {
        let keys = ApiKeys::parse("one\n\n two \n").union(ApiKeys::parse("three"));
        for key in ["one", "two", "three"] {
            assert!(accepts(&keys, &format!("Bearer {key}")) && accepts(&keys, &format!("bearer {key}")));
            let pair = BASE64_STANDARD.encode(format!("user:{key}"));
            assert!(accepts(&keys, &format!("Basic {pair}")));
        }
    }

    #[test]
    fn anything_else_is_rejected() {
        let keys = ApiKeys::parse("one");
        for wrong in ["Bearer", "Bearer ", "Bearer onee", "Bearer on", "one", "Basic one", "Digest one", ""] {
            assert!(!accepts(&keys, wrong), "{wrong}");
        }
        assert!(!keys.accepts(&HeaderMap::new()));
        assert!(ApiKeys::parse("\n").accepts(&HeaderMap::new()));
    }

    #[test]
    fn debug_output_hides_keys() {
        assert_eq!(format!("{:?}", ApiKeys::parse("secret")), "1 keys");
    }
}
