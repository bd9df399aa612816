//! [`Answer`]: what has been said so far.

mod shape;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::calls::{Call, Calls, Told};
use super::logprobs::{self, Offsets};
use crate::generate::{FinishReason, Tokenizer};
use crate::serve::Identity;
use crate::serve::app::App;
use crate::serve::engine::{Event, Likely, Said};
use crate::serve::error::ApiError;
use crate::serve::prepare::{Kind, Prepared};

/// An answer to a request, perhaps of several choices.
pub(super) struct Answer {
    app: Arc<App>,
    tokenizer: Arc<Tokenizer>,
    chat: bool,
    id: String,
    model: String,
    fingerprint: String,
    with_logprobs: bool,
    /// Answers a prompt.
    n: usize,
    prompts: Vec<Prompt>,
    choices: Vec<Choice>,
    cached: usize,
    begin: Instant,
    first: Option<Instant>,
}

struct Prompt {
    ids: Vec<u32>,
    echo: Option<String>,
}

struct Choice {
    text: String,
    /// What tells calls from text, where tools may be called.
    teller: Option<Calls>,
    calls: Vec<Call>,
    tokens: usize,
    likely: Vec<Likely>,
    /// Log-probabilities of the echoed prompt.
    scores: Vec<Option<Likely>>,
    offsets: Offsets,
    finish: Option<FinishReason>,
}

/// What a stream sends.
pub(super) enum Part {
    /// A choice goes on.
    Chunk(Value),
    Nothing,
}

impl Answer {
    pub(super) fn new(app: &Arc<App>, identity: &Identity, prepared: &Prepared, begin: Instant) -> Self {
        let prompts: Vec<Prompt> =
            prepared.prompts.iter().map(|p| Prompt { ids: p.ids.clone(), echo: p.echo.clone() }).collect();
        let tokenizer = Arc::clone(&app.texts.tokenizer);
        let choice = |_| Choice {
            text: String::new(),
            teller: (prepared.kind == Kind::Chat { calls: true }).then(Calls::default),
            calls: Vec::new(),
            tokens: 0,
            likely: Vec::new(),
            scores: Vec::new(),
            offsets: Offsets::new(&tokenizer),
            finish: None,
        };
        let chat = matches!(prepared.kind, Kind::Chat { .. });
        let kind = if chat { "chatcmpl" } else { "cmpl" };
        let choices = (0..prompts.len() * prepared.n).map(choice).collect();
        Self {
            app: Arc::clone(app),
            chat,
            id: format!("{kind}-{}", token()),
            model: identity.id.clone(),
            fingerprint: identity.fingerprint.clone(),
            with_logprobs: prepared.logprobs.is_some(),
            n: prepared.n,
            prompts,
            choices,
            cached: 0,
            begin,
            first: None,
            tokenizer,
        }
    }

    /// Waits for everything and gives the whole reply.
    pub(super) async fn whole(mut self, mut events: UnboundedReceiver<Event>) -> Result<Value, ApiError> {
        while let Some(event) = events.recv().await {
            match event {
                Event::Read { number, cached, scores } => {
                    self.read(number, cached, &scores);
                }
                Event::Said(said) => drop(self.said(said)),
                Event::Failed(failure) => return Err(failure.into()),
            }
        }
        self.check_ended()?;
        let choices: Vec<Value> = (0..self.choices.len()).map(|number| self.choice(number)).collect();
        let kind = if self.chat { "chat.completion" } else { "text_completion" };
        Ok(self.object(kind, &choices.into(), Some(self.usage())))
    }

    /// Whether every choice has come to its end; an engine that is gone leaves some without.
    pub(super) fn check_ended(&self) -> Result<(), ApiError> {
        match self.choices.iter().all(|choice| choice.finish.is_some()) {
            true => Ok(()),
            false if self.app.is_ending() => Err(ApiError::ending()),
            false => Err(ApiError::broken("the engine has ended")),
        }
    }

    /// A prompt has been read; gives the first chunks of its choices.
    pub(super) fn read(&mut self, number: usize, cached: usize, scores: &[Option<Likely>]) -> Vec<Value> {
        self.cached += cached;
        let mut chunks = Vec::new();
        for place in number * self.n..(number + 1) * self.n {
            let Some(prompt) = self.prompts.get(number) else { break };
            let Some(choice) = self.choices.get_mut(place) else { break };
            if self.chat {
                let delta = json!({"role": "assistant", "content": ""});
                chunks.push(self.chunk(place, &delta, None, &Value::Null));
                continue;
            }
            let Some(echo) = prompt.echo.clone() else { continue };
            let mut told = Value::Null;
            if self.with_logprobs {
                scores.clone_into(&mut choice.scores);
                let tokens: Vec<(u32, Option<&Likely>)> =
                    prompt.ids.iter().copied().zip(choice.scores.iter().map(Option::as_ref)).collect();
                told = logprobs::completion(&self.tokenizer, &tokens, &mut choice.offsets);
            }
            choice.text.push_str(&echo);
            chunks.push(self.chunk(place, &echo.into(), None, &told));
        }
        chunks
    }

    /// A choice goes on; gives the chunk that says so.
    pub(super) fn said(&mut self, said: Said) -> Part {
        let Said { choice: place, token, silent, text, likely, finish } = said;
        let Some(choice) = self.choices.get_mut(place) else { return Part::Nothing };
        if token.is_some() {
            choice.tokens += 1;
            if self.first.is_none() {
                self.first = Some(Instant::now());
                self.app.metrics.first_token(self.begin.elapsed());
            }
        }
        let Told { text, calls } = match &mut choice.teller {
            Some(teller) => teller.push(&text, finish.is_some()),
            None => Told { text, calls: Vec::new() },
        };
        choice.text.push_str(&text);
        choice.finish = finish;
        let first = choice.calls.len();
        choice.calls.extend(calls);
        let calls: Vec<Value> = choice
            .calls
            .iter()
            .enumerate()
            .skip(first)
            .map(|(number, call)| call.told(Some(number)))
            .collect();
        let mut told = Value::Null;
        if let (Some(likely), false) = (likely, silent) {
            told = if self.chat {
                logprobs::chat(&self.tokenizer, std::slice::from_ref(&likely))
            } else {
                logprobs::completion(&self.tokenizer, &[(likely.token, Some(&likely))], &mut choice.offsets)
            };
            choice.likely.push(likely);
        }
        if text.is_empty() && calls.is_empty() && finish.is_none() && told.is_null() {
            return Part::Nothing;
        }
        let mut delta = match self.chat {
            true if text.is_empty() => json!({}),
            true => json!({"content": text}),
            false => text.into(),
        };
        if !calls.is_empty() {
            delta["tool_calls"] = calls.into();
        }
        Part::Chunk(self.chunk(place, &delta, finish, &told))
    }
}

impl Drop for Answer {
    /// One line for each answer, whichever way it ended.
    fn drop(&mut self) {
        let tokens: usize = self.choices.iter().map(|choice| choice.tokens).sum();
        let ended = self.choices.iter().all(|choice| choice.finish.is_some());
        let seconds = self.first.map_or(0.0, |first| first.elapsed().as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
        let speed = if seconds > 0.0 { (tokens.saturating_sub(1)) as f64 / seconds } else { 0.0 };
        tracing::info!(
            id = self.id,
            model = self.model,
            prompt_tokens = self.prompts.iter().map(|prompt| prompt.ids.len()).sum::<usize>(),
            cached_tokens = self.cached,
            completion_tokens = tokens,
            tokens_per_second = format_args!("{speed:.1}"),
            ended,
            "answer"
        );
    }
}

/// 96 random bits in hex.
pub(in crate::serve) fn token() -> String {
    let bits = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:08x}", bits(), bits() >> 32)
}
