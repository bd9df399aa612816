//! Submits a lowered request to the engine.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::app_state::AppState;
use super::engine::{Event, Job};
use super::error::ApiError;
use super::lower_request::LoweredRequest;
use super::response::ResponseBuilder;

/// Queues one job for each prompt. The events of all of them arrive on one channel; dropping it cancels the request.
pub(super) fn submit(
    app: &Arc<AppState>,
    request: LoweredRequest,
    client: &str,
) -> Result<(ResponseBuilder, UnboundedReceiver<Event>), ApiError> {
    let identity =
        app.models()?.get(request.model).ok_or_else(|| ApiError::internal("the model is not served"))?;
    let permit = app.engine.reserve(request.prompts.len() * request.n)?;
    let begin = Instant::now();
    let deadline = begin + app.settings.request_timeout;
    let builder = ResponseBuilder::new(app, identity, &request, begin);
    let (sender, events) = unbounded_channel();
    let LoweredRequest { model, logprobs, prompts, .. } = request;
    for (prompt_index, prompt) in prompts.into_iter().enumerate() {
        app.engine.submit(Job {
            model,
            prompt_index,
            prompt_logprobs: logprobs.filter(|_| prompt.echo.is_some()),
            prompt: prompt.ids,
            choices: prompt.choices,
            deadline,
            client: client.to_owned(),
            events: sender.clone(),
            permit: Arc::clone(&permit),
        })?;
    }
    Ok((builder, events))
}
