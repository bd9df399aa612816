//! [`Metrics`]: the metrics of `/metrics`, in the `OpenMetrics` text format.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::identity::SurgeryInfo;

/// Counters, gauges and histograms, written by the engine and the handlers.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    /// Prompt tokens that were prefilled.
    pub(super) prompt_tokens: Counter,
    /// Prompt tokens taken from the prompt cache.
    pub(super) cached_tokens: Counter,
    /// Generated tokens.
    pub(super) generated_tokens: Counter,
    /// Queued prompts.
    pub(super) queue_depth: Gauge,
    /// Prompts in prefill and answers being decoded.
    pub(super) active: Gauge,
    /// Size of all key-value caches in bytes.
    pub(super) kv_cache_bytes: Gauge,
    first_token: Histogram,
    surgery_seconds: Gauge<f64, std::sync::atomic::AtomicU64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    route: String,
    code: u16,
}

impl Metrics {
    /// All at zero.
    pub(super) fn new(surgery: &SurgeryInfo) -> Self {
        let mut registry = Registry::with_prefix("mlxcel");
        let first_token = Histogram::new([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]);
        let metrics = Self {
            requests: Family::default(),
            prompt_tokens: Counter::default(),
            cached_tokens: Counter::default(),
            generated_tokens: Counter::default(),
            queue_depth: Gauge::default(),
            active: Gauge::default(),
            kv_cache_bytes: Gauge::default(),
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
        r.register("prompt_tokens", "Prompt tokens that were prefilled", metrics.prompt_tokens.clone());
        r.register(
            "cached_tokens",
            "Prompt tokens taken from the prompt cache",
            metrics.cached_tokens.clone(),
        );
        r.register("generated_tokens", "Generated tokens", metrics.generated_tokens.clone());
        r.register("queue_depth", "Queued prompts", metrics.queue_depth.clone());
        r.register("active", "Prompts in prefill and answers being decoded", metrics.active.clone());
        r.register("kv_cache_bytes", "Size of the key-value caches", metrics.kv_cache_bytes.clone());
        r.register("ttft_seconds", "Time from request to first token", metrics.first_token.clone());
        r.register("surgery", "Surgery on the served weights", info);
        r.register("surgery_tensors_touched", "Tensors edited by the surgery", edited);
        r.register("surgery_apply_seconds", "Duration of the surgery", metrics.surgery_seconds.clone());
        Self { registry, ..metrics }
    }

    /// Counts a request.
    pub(super) fn count_request(&self, route: &str, code: u16) {
        self.requests.get_or_create(&Request { route: route.to_owned(), code }).inc();
    }

    /// Records the time from a request to its first token.
    pub(super) fn observe_first_token(&self, after: Duration) {
        self.first_token.observe(after.as_secs_f64());
    }

    /// Records the duration of the surgery.
    pub(super) fn set_surgery_time(&self, took: Duration) {
        self.surgery_seconds.set(took.as_secs_f64());
    }

    /// All metrics as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
