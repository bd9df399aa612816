//! [`Service`]: from a bound port to the end.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use super::app::App;
use super::engine::{Command, Engine, Limits, Worker};
use super::listen::Listener;
use super::{Address, Identity, Keys, Surgery, Texts, router};
use crate::model::Model;
use crate::weights::Progress;

/// How to serve.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Another name for the first model.
    pub alias: Option<String>,
    /// Who may ask.
    pub keys: Keys,
    /// Origins whose pages may ask; `*` is all.
    pub origins: Vec<String>,
    /// Bytes of a body.
    pub body_limit: usize,
    /// Answers in the making at once.
    pub max_batch: usize,
    /// Answers that may wait.
    pub max_queue: usize,
    /// Tokens of an answer where the request does not say.
    pub max_tokens: Option<usize>,
    /// Bytes of caches of earlier prompts.
    pub prompt_cache: usize,
    /// How long a request may take.
    pub request_timeout: Duration,
    /// How long answers may go on after the end was asked for.
    pub shutdown_timeout: Duration,
}

/// The models to serve, in memory.
pub struct Ready {
    /// Each with its name.
    pub models: Vec<(Identity, Box<dyn Model>)>,
    /// How long the surgery took.
    pub surgery_time: Duration,
}

/// How a server ended.
#[derive(Debug)]
pub enum Ended<E> {
    /// It was asked to.
    Stopped,
    /// The models could not be loaded.
    Refused(E),
    /// The engine broke; its thread has said why.
    Broken,
}

/// A server that listens already and answers nothing yet.
pub struct Service {
    app: Arc<App>,
    commands: UnboundedReceiver<Command>,
    listener: Listener,
}

/// Bytes of the model thread's stack: formats are followed there, by recursion; only what is touched takes memory.
const STACK: usize = 64 << 20;
/// How long the last words of streams may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl Service {
    /// Binds the address.
    ///
    /// # Errors
    /// What the system says.
    pub async fn bind(
        address: &Address,
        settings: Settings,
        texts: Texts,
        surgery: Surgery,
    ) -> std::io::Result<Self> {
        let listener = Listener::bind(address).await?;
        let (engine, commands) = Engine::new(settings.max_batch + settings.max_queue);
        Ok(Self { app: Arc::new(App::new(settings, texts, surgery, engine)), commands, listener })
    }

    /// Where it listens: `http://127.0.0.1:8080`, or `unix:/run/mlxcel.sock`.
    ///
    /// # Errors
    /// What the system says.
    pub fn url(&self) -> std::io::Result<String> {
        self.listener.url()
    }

    /// Loads the models on a thread of their own and answers until `shutdown` comes.
    pub async fn run<E: Send + 'static>(
        self,
        load: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<Ready, E> + Send + 'static,
        shutdown: impl Future<Output = ()>,
    ) -> Ended<E> {
        let Self { app, commands, listener } = self;
        let (gone, engine) = oneshot::channel();
        let theirs = Arc::clone(&app);
        let thread = std::thread::Builder::new().name("model".to_owned()).stack_size(STACK);
        let thread = thread.spawn(move || {
            let work = AssertUnwindSafe(|| work(&theirs, load, commands));
            // A panic has been told by its hook; the channel closes and says the rest.
            if let Ok(Err(error)) = catch_unwind(work) {
                let _ = gone.send(error);
            }
        });
        if thread.is_err() {
            return Ended::Broken;
        }
        let graceful = GracefulShutdown::new();
        let ended = tokio::select! {
            () = listener.serve(router::router(&app), &graceful) => Ended::Broken,
            () = shutdown => Ended::Stopped,
            error = engine => error.map_or(Ended::Broken, Ended::Refused),
        };
        drop(listener);
        app.end();
        if !matches!(ended, Ended::Stopped) {
            app.engine.end_all();
        }
        let over = graceful.shutdown();
        tokio::pin!(over);
        if tokio::time::timeout(app.settings.shutdown_timeout, &mut over).await.is_err() {
            tracing::warn!("answers that are still under way are ended");
            app.engine.end_all();
            // Whoever does not read the last words now goes without.
            let _ = tokio::time::timeout(LAST_WORDS, &mut over).await;
        }
        ended
    }
}

/// The model thread: loads, then works until nobody can ask any more.
fn work<E>(
    app: &Arc<App>,
    load: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<Ready, E>,
    commands: UnboundedReceiver<Command>,
) -> Result<(), E> {
    let Ready { models, surgery_time } = load(&mut |progress| app.loading(progress))?;
    let (identities, models): (Vec<Identity>, Vec<Box<dyn Model>>) = models.into_iter().unzip();
    let limits = Limits { batch: app.settings.max_batch, prefix_bytes: app.settings.prompt_cache };
    app.metrics.operated(surgery_time);
    match Worker::new(models, limits, Arc::clone(&app.metrics)) {
        Ok(worker) => {
            app.loaded(identities);
            tracing::info!(together = ?worker.together(), "ready");
            worker.run(commands);
        }
        Err(error) => tracing::error!("the model cannot be run: {error}"),
    }
    Ok(())
}
