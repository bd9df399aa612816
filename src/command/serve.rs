//! `mlxcel serve`.

use std::path::Path;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;

use super::exit::Exit;
use super::failure::{Failure, Outcome};
use super::load_session::{self, Session, surgery_line};
use super::output;
use crate::cli::{LogFormat, ServeArgs};
use crate::diagnostic::Diagnostic;
use crate::generate::read_text;
use crate::load::{self, Loaded};
use crate::plan::Plan;
use crate::serve::{
    Address, ApiKeys, LoadedModels, ModelIdentity, Service, Settings, StopReason, SurgeryInfo, TextPipeline,
};
use crate::weights::Progress;

/// Plans, reads the files beside the weights, binds the port, and only then loads.
pub(super) fn run(args: &ServeArgs) -> Outcome {
    let (plan, source) = Session::open(&args.weights, args.quiet)?.into_parts();
    let settings = settings(args)?;
    let config = &plan.base().config.json;
    let context = args.ctx_size.map(|size| size as usize);
    let text_pipeline =
        TextPipeline::open(&args.weights.model, config, args.chat_template.as_deref(), context)?;
    log(args);
    let surgery = SurgeryInfo::of(&plan);
    let address = match &args.unix_socket {
        Some(path) => Address::Unix(path.clone()),
        None => Address::Tcp(args.host.clone(), args.port),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(2)
        .max_blocking_threads(8)
        // Deeply nested schemas are followed by recursion.
        .thread_stack_size(16 << 20)
        .build()
        .map_err(|error| Failure::io("cannot start the server", &error))?;
    let id = model_id(&args.weights.model);
    let context = text_pipeline.context();
    let precision = load_session::precision(args.weights.dtype);
    let keep_base = args.keep_base;
    let ended = runtime.block_on(async {
        let service = Service::bind(&address, settings, text_pipeline, surgery)
            .await
            .map_err(|error| Failure::io(&format!("cannot listen on {}", shown(&address)), &error))?;
        let url = service.url().map_err(|error| Failure::io("cannot get the server's address", &error))?;
        output::stdout(&format!("{url}\n"))?;
        warn_if_open(args);
        let shutdown = shutdown()?;
        let load = move |progress: &mut dyn FnMut(Progress)| {
            load(plan, load::Options { precision }, id, context, keep_base, progress)
        };
        Ok::<_, Failure>(service.run(load, shutdown).await)
    })?;
    match ended {
        // Without destructors: the model thread may be inside a library.
        StopReason::Shutdown => {
            tracing::info!("stopped");
            Exit::Success.end()
        }
        StopReason::LoadFailed(error) => {
            load_session::print(&[Diagnostic::from(&error)], source.as_ref());
            Exit::Error.end()
        }
        StopReason::EngineFailed => {
            tracing::error!("the engine has ended");
            Exit::Error.end()
        }
    }
}

fn settings(args: &ServeArgs) -> Result<Settings, Failure> {
    let mut keys = ApiKeys::parse(args.api_key.as_deref().unwrap_or_default());
    if let Some(file) = &args.api_key_file {
        let of_file = ApiKeys::parse(&read_text(file)?);
        if of_file.is_empty() {
            return Err(Failure::new(format!("`{}` has no API key", file.display())));
        }
        keys = keys.union(of_file);
    }
    if args.api_key.is_some() && keys.is_empty() {
        return Err(Failure::new("the API key is empty"));
    }
    Ok(Settings {
        alias: args.alias.clone(),
        api_keys: keys,
        cors_origins: args.cors_origin.clone(),
        max_body_bytes: usize::from(args.max_body) * 1_000_000,
        max_batch: usize::from(args.max_batch),
        max_queue: usize::from(args.max_queue),
        max_tokens: args.max_tokens,
        prompt_cache_bytes: args.prompt_cache as usize * 1_000_000,
        request_timeout: Duration::from_secs(args.request_timeout.into()),
        shutdown_timeout: Duration::from_secs(args.shutdown_timeout.into()),
    })
}

/// Loads on the model thread, and logs what the surgery did, one line per operation.
fn load(
    plan: Plan,
    options: load::Options,
    id: String,
    context: Option<usize>,
    keep_base: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<LoadedModels, load::LoadError> {
    let (loaded, base) = if keep_base {
        load::load_beside(plan, options, progress).map(|(loaded, base)| (loaded, Some(base)))?
    } else {
        (load::load(plan, options, progress)?, None)
    };
    let beside = base.map(|base| (ModelIdentity::base(&id, &loaded, context), base));
    let identity = ModelIdentity::new(id, &loaded, context);
    if let Some(file) = &identity.surgery.file {
        tracing::info!(file, digest = identity.surgery.header_value(), "surgery");
        for line in loaded.report.lines() {
            tracing::info!("{}", surgery_line(&line));
        }
        for diagnostic in &loaded.report.diagnostics {
            tracing::warn!("surgery: {}", diagnostic.message);
        }
    }
    let Loaded { model, policy, timings, .. } = loaded;
    let seconds = format!("{:.2}", timings.total.as_secs_f64());
    tracing::info!(
        model = identity.id,
        fingerprint = identity.fingerprint,
        seconds,
        "loaded; {}",
        policy.line()
    );
    let models = std::iter::once((identity, model)).chain(beside).collect();
    Ok(LoadedModels { models, surgery_time: timings.surgery })
}

/// The name of the model's directory.
fn model_id(dir: &Path) -> String {
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    whole.file_name().map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The first Ctrl-C or SIGTERM shuts the server down gracefully, the second at once.
fn shutdown() -> Result<impl Future<Output = ()>, Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::io("cannot listen for signals", &error));
    let (mut interrupts, mut terminations) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let (first, requested) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut first = Some(first);
        loop {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = terminations.recv() => {}
            }
            match first.take() {
                None => Exit::Interrupted.end(),
                // The receiver is gone if the server is ending by itself.
                Some(first) => drop(first.send(())),
            }
        }
    });
    Ok(async {
        if requested.await.is_ok() {
            tracing::info!("shutting down; send the signal again to stop immediately");
        }
    })
}

fn log(args: &ServeArgs) {
    let level = if args.quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        // If standard error cannot be written (a full disk), reporting that on it would panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    match args.log_format {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

/// Without a key, everyone who reaches the port may use the model and read its identity.
fn warn_if_open(args: &ServeArgs) {
    let keyless = args.api_key.is_none() && args.api_key_file.is_none();
    let loopback = args.host == "localhost"
        || args.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if keyless && !loopback && args.unix_socket.is_none() {
        tracing::warn!("anyone who can reach {} may use this server; set an API key", args.host);
    }
}

fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(host, port) => format!("{host}:{port}"),
        Address::Unix(path) => path.display().to_string(),
    }
}
