//! [`AppState`]: what all handlers share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::engine::Engine;
use super::error::ApiError;
use super::metrics::Metrics;
use super::{ModelIdentity, Settings, SurgeryInfo, TextPipeline};
use crate::weights::Progress;

/// What all handlers share.
pub(super) struct AppState {
    pub(super) settings: Settings,
    pub(super) text_pipeline: TextPipeline,
    /// From the plan, before anything is loaded.
    pub(super) surgery: SurgeryInfo,
    pub(super) metrics: Arc<Metrics>,
    pub(super) engine: Engine,
    started: Instant,
    /// Unix time of the start in seconds.
    pub(super) started_unix: u64,
    progress: Mutex<Option<Progress>>,
    models: OnceLock<Vec<ModelIdentity>>,
    shutting_down: AtomicBool,
}

impl AppState {
    /// The state of a server that has not loaded its models yet.
    pub(super) fn new(
        settings: Settings,
        text_pipeline: TextPipeline,
        surgery: SurgeryInfo,
        engine: Engine,
    ) -> Self {
        let metrics = Arc::new(Metrics::new(&surgery));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self {
            settings,
            text_pipeline,
            surgery,
            metrics,
            engine,
            started: Instant::now(),
            started_unix: now.as_secs(),
            progress: Mutex::new(None),
            models: OnceLock::new(),
            shutting_down: AtomicBool::new(false),
        }
    }

    /// Unix time in seconds of an instant since the start.
    pub(super) fn unix_time(&self, instant: Instant) -> u64 {
        self.started_unix + instant.saturating_duration_since(self.started).as_secs()
    }

    /// Records the progress of loading.
    pub(super) fn set_progress(&self, progress: Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    }

    /// Records that the models are loaded.
    pub(super) fn set_models(&self, models: Vec<ModelIdentity>) {
        // Only the engine's thread calls this, once.
        let _ = self.models.set(models);
    }

    /// Records that the server is shutting down.
    pub(super) fn shut_down(&self) {
        self.shutting_down.store(true, Ordering::SeqCst);
    }

    /// Whether the server is shutting down.
    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::SeqCst)
    }

    /// The loading phase, such as `loading 40 %`; `None` once the models are loaded.
    pub(super) fn loading_phase(&self) -> Option<String> {
        if self.models.get().is_some() {
            return None;
        }
        Some(phase(*self.progress.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The models that are served.
    pub(super) fn models(&self) -> Result<&[ModelIdentity], ApiError> {
        match self.models.get() {
            _ if self.is_shutting_down() => Err(ApiError::shutting_down()),
            Some(models) => Ok(models),
            None => Err(ApiError::loading(&self.loading_phase().unwrap_or_default())),
        }
    }

    /// The model with this id or alias, and its index; the first model if no name is given.
    pub(super) fn model(&self, name: Option<&str>) -> Result<(usize, &ModelIdentity), ApiError> {
        let models = self.models()?;
        let found = match name {
            None => models.first().map(|model| (0, model)),
            Some(name) => models.iter().enumerate().find(|(index, model)| {
                model.id == name || (*index == 0 && self.settings.alias.as_deref() == Some(name))
            }),
        };
        found.ok_or_else(|| {
            let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
            ApiError::model_not_found(name.unwrap_or_default(), &ids)
        })
    }
}

fn phase(progress: Option<Progress>) -> String {
    match progress {
        None => "loading".to_owned(),
        Some(Progress { operating: Some((number, count)), .. }) => format!("operating {number}/{count}"),
        Some(Progress { done, total, .. }) => {
            format!("loading {} %", done.saturating_mul(100) / total.max(1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_distinguishes_loading_from_operating() {
        let progress = Progress { done: 1, total: 3, operating: None };
        assert_eq!(phase(None), "loading");
        assert_eq!(phase(Some(progress)), "loading 33 %");
        assert_eq!(phase(Some(Progress { operating: Some((3, 7)), ..progress })), "operating 3/7");
    }
}
