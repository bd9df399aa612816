//! [`Service`]: binds the address, loads the models, serves until shutdown.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use super::app_state::AppState;
use super::engine::{BatchLimits, Command, Engine, Worker};
use super::http::{Address, Listener, router};
use super::{ModelIdentity, Settings, SurgeryInfo, TextPipeline};
use crate::model::Model;
use crate::weights::Progress;

/// The models to serve.
pub(crate) struct LoadedModels {
    /// The models and their identities; the first is the default.
    pub models: Vec<(ModelIdentity, Box<dyn Model>)>,
    /// Duration of the surgery.
    pub surgery_time: Duration,
}

/// Why a server stopped.
#[derive(Debug)]
pub(crate) enum StopReason<E> {
    /// Shutdown was requested.
    Shutdown,
    /// The models could not be loaded.
    LoadFailed(E),
    /// The model thread ended; it has logged why.
    EngineFailed,
}

/// A server that listens but does not accept connections yet.
pub(crate) struct Service {
    app: Arc<AppState>,
    commands: UnboundedReceiver<Command>,
    listener: Listener,
}

/// Stack of the model thread in bytes. Guides recurse there; only touched pages take memory.
const STACK_BYTES: usize = 64 << 20;
/// Time that streams get to send their error after they were aborted.
const ABORT_TIMEOUT: Duration = Duration::from_secs(2);

impl Service {
    /// Binds the address.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub(crate) async fn bind(
        address: &Address,
        settings: Settings,
        text_pipeline: TextPipeline,
        surgery: SurgeryInfo,
    ) -> std::io::Result<Self> {
        let listener = Listener::bind(address).await?;
        let (engine, commands) = Engine::new(settings.max_batch + settings.max_queue);
        let app = Arc::new(AppState::new(settings, text_pipeline, surgery, engine));
        Ok(Self { app, commands, listener })
    }

    /// Where it listens: `http://127.0.0.1:8080` or `unix:/run/mlxcel.sock`.
    ///
    /// # Errors
    /// When the system does not report the bound address.
    pub(crate) fn url(&self) -> std::io::Result<String> {
        self.listener.url()
    }

    /// Loads the models on the model thread, and serves until `shutdown` completes.
    pub(crate) async fn run<E: Send + 'static>(
        self,
        load: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<LoadedModels, E> + Send + 'static,
        shutdown: impl Future<Output = ()>,
    ) -> StopReason<E> {
        let Self { app, commands, listener } = self;
        let (load_failed, engine_end) = oneshot::channel();
        let worker_app = Arc::clone(&app);
        let thread = std::thread::Builder::new().name("model".to_owned()).stack_size(STACK_BYTES);
        let thread = thread.spawn(move || {
            let work = AssertUnwindSafe(|| load_and_work(&worker_app, load, commands));
            // The panic hook has reported a panic; the closed channel reports the end of the engine.
            if let Ok(Err(error)) = catch_unwind(work) {
                let _ = load_failed.send(error);
            }
        });
        if thread.is_err() {
            return StopReason::EngineFailed;
        }
        let graceful = GracefulShutdown::new();
        let reason = tokio::select! {
            () = listener.serve(router(&app), &graceful) => StopReason::EngineFailed,
            () = shutdown => StopReason::Shutdown,
            error = engine_end => error.map_or(StopReason::EngineFailed, StopReason::LoadFailed),
        };
        drop(listener);
        app.shut_down();
        if !matches!(reason, StopReason::Shutdown) {
            app.engine.abort_all();
        }
        let connections_closed = graceful.shutdown();
        tokio::pin!(connections_closed);
        if tokio::time::timeout(app.settings.shutdown_timeout, &mut connections_closed).await.is_err() {
            tracing::warn!("shutdown timeout: aborting the remaining requests");
            app.engine.abort_all();
            // Connections that still do not close are dropped.
            let _ = tokio::time::timeout(ABORT_TIMEOUT, &mut connections_closed).await;
        }
        reason
    }
}

/// The model thread: loads the models, then works until all handlers are gone.
fn load_and_work<E>(
    app: &Arc<AppState>,
    load: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<LoadedModels, E>,
    commands: UnboundedReceiver<Command>,
) -> Result<(), E> {
    let LoadedModels { models, surgery_time } = load(&mut |progress| app.set_progress(progress))?;
    let (identities, models): (Vec<ModelIdentity>, Vec<Box<dyn Model>>) = models.into_iter().unzip();
    let limits = BatchLimits {
        sequences: app.settings.max_batch,
        prefix_cache_bytes: app.settings.prompt_cache_bytes,
    };
    app.metrics.set_surgery_time(surgery_time);
    match Worker::new(models, limits, Arc::clone(&app.metrics)) {
        Ok(worker) => {
            app.set_models(identities);
            tracing::info!(batch_policies = ?worker.batch_policies(), "ready");
            worker.run(commands);
        }
        Err(error) => tracing::error!("cannot run the model: {error}"),
    }
    Ok(())
}
