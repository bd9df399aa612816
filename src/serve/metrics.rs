//! [`Metrics`]: what `/metrics` tells, in the text format of Prometheus.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::identity::Surgery;

/// Counters and gauges. The engine and the handlers write them.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    /// Tokens of prompts that were read.
    pub(super) prompt_tokens: Counter,
    /// Tokens of prompts that were known from before.
    pub(super) cached_tokens: Counter,
    /// Tokens of answers.
    pub(super) generated_tokens: Counter,
    /// Prompts that wait.
    pub(super) waiting: Gauge,
    /// Prompts and answers under way.
    pub(super) active: Gauge,
    /// Bytes of keys and values.
    pub(super) cache_bytes: Gauge,
    first_token: Histogram,
    surgery_seconds: Gauge<f64, std::sync::atomic::AtomicU64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    route: String,
    code: u16,
}

impl Metrics {
    /// All at nothing.
    pub(super) fn new(surgery: &Surgery) -> Self {
        let mut registry = Registry::with_prefix("mlxcel");
        let first_token = Histogram::new([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]);
        let metrics = Self {
            requests: Family::default(),
            prompt_tokens: Counter::default(),
            cached_tokens: Counter::default(),
            generated_tokens: Counter::default(),
            waiting: Gauge::default(),
            active: Gauge::default(),
            cache_bytes: Gauge::default(),
            first_token,
            surgery_seconds: Gauge::default(),
            registry: Registry::default(),
        };
        let info = Info::new([
            ("digest", surgery.digest.clone().unwrap_or_else(|| "none".to_owned())),
            ("operations", surgery.operations.to_string()),
        ]);
        let edited: Gauge = Gauge::default();
        edited.set(i64::try_from(surgery.tensors_edited).unwrap_or(i64::MAX));
        let r = &mut registry;
        r.register("requests", "Requests by route and status code", metrics.requests.clone());
        r.register("prompt_tokens", "Tokens of prompts that were read", metrics.prompt_tokens.clone());
        r.register("cached_tokens", "Tokens of prompts known from before", metrics.cached_tokens.clone());
        r.register("generated_tokens", "Tokens of answers", metrics.generated_tokens.clone());
        r.register("queue_depth", "Prompts that wait", metrics.waiting.clone());
        r.register("active", "Prompts and answers under way", metrics.active.clone());
        r.register("kv_cache_bytes", "Bytes of keys and values", metrics.cache_bytes.clone());
        r.register("ttft_seconds", "From a request to its first token", metrics.first_token.clone());
        r.register("surgery", "The surgery on the weights that answer", info);
        r.register("surgery_tensors_touched", "Tensors that the surgery edited", edited);
        r.register("surgery_apply_seconds", "How long the surgery took", metrics.surgery_seconds.clone());
        Self { registry, ..metrics }
    }

    /// Counts a request that was answered.
    pub(super) fn answered(&self, route: &str, code: u16) {
        self.requests.get_or_create(&Request { route: route.to_owned(), code }).inc();
    }

    /// Counts a first token.
    pub(super) fn first_token(&self, after: Duration) {
        self.first_token.observe(after.as_secs_f64());
    }

    /// Notes how long the surgery took.
    pub(super) fn operated(&self, took: Duration) {
        self.surgery_seconds.set(took.as_secs_f64());
    }

    /// Everything, as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
