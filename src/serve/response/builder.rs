//! [`ResponseBuilder`]: accumulates the engine's events of one request.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use super::choice::Choice;
use super::envelope::{Envelope, Usage};
use crate::serve::ModelIdentity;
use crate::serve::app_state::AppState;
use crate::serve::endpoint::Endpoint;
use crate::serve::engine::{Event, TokenDelta, TokenLogprob};
use crate::serve::error::ApiError;
use crate::serve::lower_request::LoweredRequest;

/// The response to a request, as far as it is generated. Dropping it logs the answer, however it ended.
pub(in crate::serve) struct ResponseBuilder {
    app: Arc<AppState>,
    envelope: Envelope,
    prompts: Vec<Prompt>,
    /// `n` choices for each prompt.
    choices: Vec<Choice>,
    n: usize,
    /// Prompt tokens taken from the prompt cache.
    cached: usize,
    begin: Instant,
    first_token: Option<Instant>,
}

struct Prompt {
    ids: Vec<u32>,
    echo: Option<String>,
}

impl ResponseBuilder {
    /// The empty response to a request that arrived at `begin`.
    pub(in crate::serve) fn new(
        app: &Arc<AppState>,
        identity: &ModelIdentity,
        request: &LoweredRequest,
        begin: Instant,
    ) -> Self {
        let tokenizer = &app.text_pipeline.tokenizer;
        let with_logprobs = request.logprobs.is_some();
        let choice =
            |index| Choice::new(index, request.endpoint, with_logprobs, request.parse_tool_calls, tokenizer);
        let prompts = request.prompts.iter();
        Self {
            app: Arc::clone(app),
            envelope: Envelope::new(
                request.endpoint,
                app.unix_time(begin),
                &identity.id,
                &identity.fingerprint,
            ),
            prompts: prompts
                .map(|prompt| Prompt { ids: prompt.ids.clone(), echo: prompt.echo.clone() })
                .collect(),
            choices: (0..request.prompts.len() * request.n).map(choice).collect(),
            n: request.n,
            cached: 0,
            begin,
            first_token: None,
        }
    }

    /// Waits for all events and returns the whole response.
    pub(in crate::serve) async fn collect(
        mut self,
        mut events: UnboundedReceiver<Event>,
    ) -> Result<Value, ApiError> {
        while let Some(event) = events.recv().await {
            self.apply(event)?;
        }
        self.check_finished()?;
        let choices: Vec<Value> = self
            .choices
            .iter()
            .enumerate()
            .map(|(index, choice)| choice.json(self.prompts.get(index / self.n).map_or(&[], |p| &p.ids)))
            .collect();
        Ok(self.envelope.response(&choices, self.usage()))
    }

    /// Adds an event; returns the chunks that a stream sends for it.
    pub(in crate::serve) fn apply(&mut self, event: Event) -> Result<Vec<Value>, ApiError> {
        match event {
            Event::PromptRead { prompt_index, cached, logprobs } => {
                Ok(self.prompt_read(prompt_index, cached, &logprobs))
            }
            Event::Token(delta) => Ok(self.token(delta).into_iter().collect()),
            Event::Failed(failure) => Err(failure.into()),
        }
    }

    /// Checks, after the last event, that every choice is finished: an engine that has died leaves some unfinished.
    pub(in crate::serve) fn check_finished(&self) -> Result<(), ApiError> {
        match self.choices.iter().all(Choice::is_finished) {
            true => Ok(()),
            false if self.app.is_shutting_down() => Err(ApiError::shutting_down()),
            false => Err(ApiError::internal("the engine has stopped")),
        }
    }

    /// The last chunk of a stream with usage.
    pub(in crate::serve) fn usage_chunk(&self) -> Value {
        self.envelope.usage_chunk(self.usage())
    }

    fn prompt_read(
        &mut self,
        prompt_index: usize,
        cached: usize,
        logprobs: &[Option<TokenLogprob>],
    ) -> Vec<Value> {
        self.cached += cached;
        let Self { envelope, prompts, choices, n, .. } = self;
        let Some(prompt) = prompts.get(prompt_index) else { return Vec::new() };
        let chunks = choices.iter_mut().skip(prompt_index * *n).take(*n).filter_map(|choice| {
            match (envelope.endpoint, &prompt.echo) {
                (Endpoint::Chat, _) => Some(choice.role_chunk()),
                (Endpoint::Completion, Some(echo)) => Some(choice.echo(&prompt.ids, echo, logprobs)),
                (Endpoint::Completion, None) => None,
            }
        });
        chunks.map(|chunk| envelope.chunk(&chunk)).collect()
    }

    fn token(&mut self, delta: TokenDelta) -> Option<Value> {
        if delta.token.is_some() && self.first_token.is_none() {
            self.first_token = Some(Instant::now());
            self.app.metrics.observe_first_token(self.begin.elapsed());
        }
        let chunk = self.choices.get_mut(delta.choice)?.push(delta)?;
        Some(self.envelope.chunk(&chunk))
    }

    fn usage(&self) -> Usage {
        Usage {
            prompt: self.prompts.iter().map(|prompt| prompt.ids.len()).sum(),
            cached: self.cached,
            completion: self.choices.iter().map(Choice::token_count).sum(),
        }
    }
}

impl Drop for ResponseBuilder {
    fn drop(&mut self) {
        let usage = self.usage();
        let seconds = self.first_token.map_or(0.0, |first| first.elapsed().as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
        let speed = if seconds > 0.0 { usage.completion.saturating_sub(1) as f64 / seconds } else { 0.0 };
        tracing::info!(
            id = self.envelope.id,
            model = self.envelope.model,
            prompt_tokens = usage.prompt,
            cached_tokens = usage.cached,
            completion_tokens = usage.completion,
            tokens_per_second = format_args!("{speed:.1}"),
            ended = self.choices.iter().all(Choice::is_finished),
            "answer"
        );
    }
}
