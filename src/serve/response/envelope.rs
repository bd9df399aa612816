//! [`Envelope`]: what a response and each of its chunks has around its choices.

use serde_json::{Value, json};

use crate::serve::endpoint::Endpoint;
use crate::serve::random_id::random_id;

/// The fields that a response and all its chunks share.
pub(super) struct Envelope {
    pub(super) endpoint: Endpoint,
    pub(super) id: String,
    /// Unix time of the request in seconds.
    created: u64,
    /// The model's id.
    pub(super) model: String,
    fingerprint: String,
}

/// Token counts of a response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) prompt: usize,
    /// Prompt tokens taken from the prompt cache.
    pub(super) cached: usize,
    pub(super) completion: usize,
}

impl Envelope {
    pub(super) fn new(endpoint: Endpoint, created: u64, model: &str, fingerprint: &str) -> Self {
        Self {
            endpoint,
            id: format!("{}-{}", endpoint.id_prefix(), random_id()),
            created,
            model: model.to_owned(),
            fingerprint: fingerprint.to_owned(),
        }
    }

    /// A whole response.
    pub(super) fn response(&self, choices: &[Value], usage: Usage) -> Value {
        let mut object = self.object(self.endpoint.object(), choices);
        object["usage"] = usage.json();
        object
    }

    /// A chunk of a stream with one choice.
    pub(super) fn chunk(&self, choice: &Value) -> Value {
        self.object(self.endpoint.chunk_object(), std::slice::from_ref(choice))
    }

    /// The last chunk of a stream, which has the usage and no choice.
    pub(super) fn usage_chunk(&self, usage: Usage) -> Value {
        let mut object = self.object(self.endpoint.chunk_object(), &[]);
        object["usage"] = usage.json();
        object
    }

    fn object(&self, name: &str, choices: &[Value]) -> Value {
        json!({
            "id": self.id,
            "object": name,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
        })
    }
}

impl Usage {
    fn json(self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        })
    }
}
