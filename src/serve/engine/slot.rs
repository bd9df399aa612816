//! [`Slot`]: an answer being decoded, with its key-value cache.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

use super::event::{Event, Failure, TokenDelta};
use super::job::ChoiceJob;
use super::logit_adjustments::LogitAdjustments;
use super::logprob::TokenLogprob;
use crate::generate::{FinishReason, Sequence};
use crate::nn::Cache;
use crate::serve::guide::Guide;

/// An answer being decoded.
pub(super) struct Slot {
    pub(super) model: usize,
    pub(super) cache: Cache,
    /// The token that the model has not processed yet.
    pub(super) last_token: u32,
    pub(super) deadline: Instant,
    events: UnboundedSender<Event>,
    choice: usize,
    sequence: Sequence,
    eos: Vec<u32>,
    adjustments: LogitAdjustments,
    guide: Option<Guide>,
    logprobs: Option<usize>,
    ended: bool,
    /// Keeps the engine's capacity reserved while the answer is decoded.
    _permit: Arc<OwnedSemaphorePermit>,
}

/// What all answers to one prompt share.
#[derive(Clone)]
pub(super) struct PromptContext {
    pub(super) model: usize,
    pub(super) deadline: Instant,
    pub(super) events: UnboundedSender<Event>,
    pub(super) permit: Arc<OwnedSemaphorePermit>,
}

impl Slot {
    pub(super) fn new(job: ChoiceJob, cache: Cache, context: PromptContext) -> Self {
        let ChoiceJob { choice, request, adjustments, guide, logprobs } = job;
        let PromptContext { model, deadline, events, permit } = context;
        let eos = request.eos.clone();
        let sequence = Sequence::new(request);
        let mut slot = Self {
            model,
            cache,
            last_token: 0,
            deadline,
            events,
            choice,
            sequence,
            eos,
            adjustments,
            guide,
            logprobs,
            ended: false,
            _permit: permit,
        };
        if let Some(finish) = slot.sequence.finish() {
            slot.send(TokenDelta {
                choice,
                token: None,
                text: String::new(),
                logprob: None,
                finish: Some(finish),
            });
        }
        slot
    }

    /// Whether it has ended or its client has disconnected.
    pub(super) fn is_done(&self) -> bool {
        self.ended || self.events.is_closed()
    }

    /// The prompt's tokens.
    pub(super) fn prompt(&self) -> &[u32] {
        self.sequence.prompt()
    }

    /// Samples the next token from the logits after the last one, and sends it.
    pub(super) fn advance(&mut self, logits: &[f32]) {
        match self.sample(logits) {
            Ok(delta) => self.send(delta),
            Err(failure) => self.fail(failure),
        }
    }

    /// Ends it with an error.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.ended = true;
        // A client that has disconnected needs no error.
        let _ = self.events.send(Event::Failed(failure));
    }

    fn sample(&mut self, logits: &[f32]) -> Result<TokenDelta, Failure> {
        let mut piece = if self.adjustments.is_noop() && self.guide.is_none() {
            self.sequence.advance(logits)?
        } else {
            let mut adjusted = logits.to_vec();
            self.adjustments.apply(&mut adjusted, self.sequence.answer());
            if let Some(guide) = &mut self.guide {
                guide.mask(&mut adjusted, &self.eos)?;
            }
            self.sequence.advance(&adjusted)?
        };
        let is_eos = self.eos.contains(&piece.token);
        if let (Some(guide), false) = (&mut self.guide, is_eos) {
            guide.consume(piece.token)?;
            if guide.is_complete() && piece.finish != Some(FinishReason::Stop) {
                piece.text.push_str(&self.sequence.complete());
                piece.finish = self.sequence.finish();
            }
        }
        self.last_token = piece.token;
        let logprobs = self.logprobs.filter(|_| !is_eos);
        Ok(TokenDelta {
            choice: self.choice,
            token: Some(piece.token),
            text: piece.text,
            logprob: logprobs.map(|count| TokenLogprob::from_logits(logits, piece.token, count)),
            finish: piece.finish,
        })
    }

    fn send(&mut self, delta: TokenDelta) {
        self.ended = delta.finish.is_some();
        // The worker drops slots of disconnected clients before the next step.
        let _ = self.events.send(Event::Token(delta));
    }
}
