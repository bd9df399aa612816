//! [`App`]: what all handlers share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::engine::Engine;
use super::error::ApiError;
use super::metrics::Metrics;
use super::{Identity, Settings, Surgery, Texts};
use crate::weights::Progress;

/// What all handlers share.
pub(super) struct App {
    pub(super) settings: Settings,
    pub(super) texts: Texts,
    /// Known from the plan, before anything is loaded.
    pub(super) surgery: Surgery,
    pub(super) metrics: Arc<Metrics>,
    pub(super) engine: Engine,
    pub(super) clock: Instant,
    /// Unix time at the start.
    pub(super) started: u64,
    loading: Mutex<Option<Progress>>,
    models: OnceLock<Vec<Identity>>,
    ending: AtomicBool,
}

impl App {
    pub(super) fn new(settings: Settings, texts: Texts, surgery: Surgery, engine: Engine) -> Self {
        let metrics = Arc::new(Metrics::new(&surgery));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self {
            settings,
            texts,
            surgery,
            metrics,
            engine,
            clock: Instant::now(),
            started: now.as_secs(),
            loading: Mutex::new(None),
            models: OnceLock::new(),
            ending: AtomicBool::new(false),
        }
    }

    /// Notes how far loading is.
    pub(super) fn loading(&self, progress: Progress) {
        *self.loading.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    }

    /// Notes that everything is there.
    pub(super) fn loaded(&self, models: Vec<Identity>) {
        // There is one engine, and it says so once.
        let _ = self.models.set(models);
    }

    /// Notes that the server goes down.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    /// Whether the server goes down.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Where loading stands, in words; none when everything is there.
    pub(super) fn phase(&self) -> Option<String> {
        if self.models.get().is_some() {
            return None;
        }
        Some(words(*self.loading.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The models that answer.
    pub(super) fn models(&self) -> Result<&[Identity], ApiError> {
        match self.models.get() {
            _ if self.is_ending() => Err(ApiError::ending()),
            Some(models) => Ok(models),
            None => Err(ApiError::loading(&self.phase().unwrap_or_default())),
        }
    }

    /// The model that a request names, and its place; the first where it names none.
    pub(super) fn model(&self, name: Option<&str>) -> Result<(usize, &Identity), ApiError> {
        let models = self.models()?;
        let found = match name {
            None => models.first().map(|model| (0, model)),
            Some(name) => models.iter().enumerate().find(|(at, model)| {
                model.id == name || (*at == 0 && self.settings.alias.as_deref() == Some(name))
            }),
        };
        found.ok_or_else(|| {
            let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
            ApiError::no_model(name.unwrap_or_default(), &ids)
        })
    }
}

/// Where loading stands.
fn words(progress: Option<Progress>) -> String {
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
    fn the_phase_tells_surgery_from_reading() {
        let progress = Progress { done: 1, total: 3, operating: None };
        assert_eq!(words(None), "loading");
        assert_eq!(words(Some(progress)), "loading 33 %");
        assert_eq!(words(Some(Progress { operating: Some((3, 7)), ..progress })), "operating 3/7");
    }
}
