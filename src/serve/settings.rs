//! [`Settings`]: how to serve.

use std::time::Duration;

use super::ApiKeys;

/// How to serve.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// A second name of the first model.
    pub alias: Option<String>,
    /// Accepted API keys; none lets everyone in.
    pub api_keys: ApiKeys,
    /// Origins allowed by CORS; `*` allows all.
    pub cors_origins: Vec<String>,
    /// Maximum size of a request body in bytes.
    pub max_body_bytes: usize,
    /// Maximum number of sequences decoded concurrently.
    pub max_batch: usize,
    /// Maximum number of queued sequences.
    pub max_queue: usize,
    /// Default maximum tokens per answer; without it `generation_config.json` decides.
    pub max_tokens: Option<usize>,
    /// Size of the prompt cache in bytes; 0 disables it.
    pub prompt_cache_bytes: usize,
    /// Time limit of a request, the time in the queue included.
    pub request_timeout: Duration,
    /// Time that running requests get to finish after shutdown was requested.
    pub shutdown_timeout: Duration,
}
