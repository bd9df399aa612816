//! From events to a reply: one JSON object, or a stream of server-sent events.

mod answer;
mod calls;
mod logprobs;
mod stream;

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc::unbounded_channel;

use super::app::App;
use super::engine::Job;
use super::error::ApiError;
use super::prepare::Prepared;
use answer::Answer;
pub(super) use answer::token;
pub(super) use calls::known_to;

/// Hands a request to the engine, and answers as it does.
pub(super) async fn reply(app: Arc<App>, prepared: Prepared, client: String) -> Result<Response, ApiError> {
    let models = app.models()?;
    let identity = models.get(prepared.model).ok_or_else(|| ApiError::broken("no such model"))?;
    let mark = identity.surgery.mark().to_owned();
    let total = prepared.prompts.len() * prepared.n;
    let place = app.engine.reserve(total)?;
    let begin = Instant::now();
    let deadline = begin + app.settings.request_timeout;
    let (sender, events) = unbounded_channel();
    let Prepared { model, stream, usage, logprobs, ref prompts, .. } = prepared;
    let answer = Answer::new(&app, identity, &prepared, begin);
    let prompts: Vec<(Vec<u32>, Option<usize>)> =
        prompts.iter().map(|p| (p.ids.clone(), logprobs.filter(|_| p.echo.is_some()))).collect();
    for (number, ((prompt, score), drafts)) in prompts.into_iter().zip(prepared.drafts).enumerate() {
        let (client, events, place) = (client.clone(), sender.clone(), Arc::clone(&place));
        app.engine.submit(Job { model, number, prompt, drafts, score, deadline, client, events, place })?;
    }
    drop((sender, place));
    let mut response = if stream {
        stream::response(answer, events, usage)
    } else {
        Json(answer.whole(events).await?).into_response()
    };
    if let Ok(mark) = mark.parse() {
        response.headers_mut().insert(super::router::MARK, mark);
    }
    Ok(response)
}

#[cfg(test)]
mod tests;
