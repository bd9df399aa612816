//! [`Slot`]: an answer in the making, with its cache.

use std::sync::Arc;
use std::time::Instant;

use llguidance::Matcher;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

use super::adjust::{broken, mask};
use super::{Adjust, Draft, Event, Failure, Likely, Said};
use crate::generate::{FinishReason, Sequence};
use crate::nn::Cache;

/// An answer in the making.
pub(super) struct Slot {
    pub(super) model: usize,
    pub(super) cache: Cache,
    /// The token that the model has not seen yet.
    pub(super) last: u32,
    pub(super) deadline: Instant,
    pub(super) events: UnboundedSender<Event>,
    choice: usize,
    sequence: Sequence,
    eos: Vec<u32>,
    adjust: Adjust,
    guide: Option<Matcher>,
    logprobs: Option<usize>,
    ended: bool,
    /// Held as long as the answer is being made.
    _place: Arc<OwnedSemaphorePermit>,
}

/// What the answers to one prompt have in common.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) model: usize,
    pub(super) deadline: Instant,
    pub(super) events: UnboundedSender<Event>,
    pub(super) place: Arc<OwnedSemaphorePermit>,
}

impl Slot {
    pub(super) fn new(draft: Draft, cache: Cache, common: Common) -> Self {
        let Draft { choice, request, adjust, guide, logprobs } = draft;
        let Common { model, deadline, events, place } = common;
        let eos = request.eos.clone();
        let sequence = Sequence::new(request);
        let mut slot = Self {
            model,
            cache,
            last: 0,
            deadline,
            events,
            choice,
            sequence,
            eos,
            adjust,
            guide,
            logprobs,
            ended: false,
            _place: place,
        };
        if let Some(finish) = slot.sequence.finish() {
            let text = String::new();
            slot.say(Said { choice, token: None, silent: true, text, likely: None, finish: Some(finish) });
        }
        slot
    }

    /// Whether nothing more is wanted: it has ended, or nobody listens.
    pub(super) fn is_over(&self) -> bool {
        self.ended || self.events.is_closed()
    }

    /// The prompt's tokens.
    pub(super) fn prompt(&self) -> &[u32] {
        self.sequence.prompt()
    }

    /// Takes the logits after the last token, chooses the next and tells of it.
    pub(super) fn advance(&mut self, row: &[f32]) {
        if let Err(failure) = self.try_advance(row) {
            self.fail(failure);
        }
    }

    /// Ends it with an error.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.ended = true;
        // Whoever has gone is not told.
        let _ = self.events.send(Event::Failed(failure));
    }

    fn try_advance(&mut self, row: &[f32]) -> Result<(), Failure> {
        let piece = if self.adjust.acts() || self.guide.is_some() {
            let mut adjusted = row.to_vec();
            self.adjust.apply(&mut adjusted, self.sequence.answer());
            if let Some(guide) = &mut self.guide {
                mask(&mut adjusted, guide, &self.eos)?;
            }
            self.sequence.advance(&adjusted)
        } else {
            self.sequence.advance(row)
        };
        let mut piece = piece.map_err(|error| Failure::Broken(error.to_string()))?;
        let silent = self.eos.contains(&piece.token);
        if let (Some(guide), false) = (&mut self.guide, silent) {
            guide.consume_token(piece.token).map_err(|error| Failure::Broken(broken(&error.to_string())))?;
            if guide.is_stopped() && piece.finish != Some(FinishReason::Stop) {
                piece.text.push_str(&self.sequence.complete());
                piece.finish = self.sequence.finish();
            }
        }
        self.last = piece.token;
        let likely = self.logprobs.filter(|_| !silent).map(|count| Likely::of(row, piece.token, count));
        let (token, text, finish) = (Some(piece.token), piece.text, piece.finish);
        self.say(Said { choice: self.choice, token, silent, text, likely, finish });
        Ok(())
    }

    fn say(&mut self, said: Said) {
        self.ended = said.finish.is_some();
        // Whoever has gone is noticed before the next step.
        let _ = self.events.send(Event::Said(said));
    }
}
