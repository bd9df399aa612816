//! [`Job`]: a prompt and the answers wanted for it; [`Event`]: what becomes of them.

use std::sync::Arc;
use std::time::Instant;

use llguidance::Matcher;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

use super::Adjust;
use crate::generate::{FinishReason, Request};

/// A prompt and the answers wanted for it.
pub(in crate::serve) struct Job {
    /// Which of the served models.
    pub(in crate::serve) model: usize,
    /// The prompt's number within its request.
    pub(in crate::serve) number: usize,
    /// The prompt's tokens, at least one.
    pub(in crate::serve) prompt: Vec<u32>,
    /// One for each answer; at most as many as there are slots.
    pub(in crate::serve) drafts: Vec<Draft>,
    /// Whether to tell the prompt's own log-probabilities, with so many alternatives.
    pub(in crate::serve) score: Option<usize>,
    /// When it is too late.
    pub(in crate::serve) deadline: Instant,
    /// Who asks: clients take turns.
    pub(in crate::serve) client: String,
    /// Who listens.
    pub(in crate::serve) events: UnboundedSender<Event>,
    /// Its room in the queue, given back when all its answers have ended.
    pub(in crate::serve) place: Arc<OwnedSemaphorePermit>,
}

/// One answer to be given.
pub(in crate::serve) struct Draft {
    /// Its number within the request.
    pub(in crate::serve) choice: usize,
    /// What to generate.
    pub(in crate::serve) request: Request,
    /// What is added to logits.
    pub(in crate::serve) adjust: Adjust,
    /// What the text has to look like.
    pub(in crate::serve) guide: Option<Matcher>,
    /// Whether to tell log-probabilities, with so many alternatives.
    pub(in crate::serve) logprobs: Option<usize>,
}

/// What a listener hears. The channel closes after the last answer's end, or after a failure.
#[derive(Debug)]
pub(in crate::serve) enum Event {
    /// A prompt has been read.
    Read {
        /// The prompt's number within its request.
        number: usize,
        /// So many of its tokens were known from before.
        cached: usize,
        /// Each token's log-probability where that was asked for; none for the first.
        scores: Vec<Option<Likely>>,
    },
    /// An answer goes on.
    Said(Said),
    /// Nothing more will come.
    Failed(Failure),
}

/// A token of an answer and the text that it completes.
#[derive(Debug)]
pub(in crate::serve) struct Said {
    pub(in crate::serve) choice: usize,
    /// None where no token was wanted.
    pub(in crate::serve) token: Option<u32>,
    /// Whether the token only ends the answer.
    pub(in crate::serve) silent: bool,
    pub(in crate::serve) text: String,
    pub(in crate::serve) likely: Option<Likely>,
    pub(in crate::serve) finish: Option<FinishReason>,
}

/// How likely a token was, by the model's own logits.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::serve) struct Likely {
    pub(in crate::serve) token: u32,
    pub(in crate::serve) logprob: f64,
    /// The likeliest tokens, likeliest first.
    pub(in crate::serve) top: Vec<(u32, f64)>,
}

/// Why nothing more comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::serve) enum Failure {
    /// `--request-timeout` is over.
    Late,
    /// The server is going down.
    Ending,
    /// This model cannot answer this.
    Broken(String),
}

impl Likely {
    /// Of `token` in a row of logits, with the `count` likeliest.
    pub(super) fn of(row: &[f32], token: u32, count: usize) -> Self {
        let sum = crate::generate::log_sum(row);
        let logprob = |id: u32| row.get(id as usize).map_or(f64::NAN, |logit| f64::from(*logit) - sum);
        let mut ids: Vec<u32> = (0u32..).take(row.len()).collect();
        let likelier = |a: &u32, b: &u32| row[*b as usize].total_cmp(&row[*a as usize]).then(a.cmp(b));
        let count = count.min(ids.len());
        if count < ids.len() {
            ids.select_nth_unstable_by(count, likelier);
            ids.truncate(count);
        }
        ids.sort_unstable_by(likelier);
        Self { token, logprob: logprob(token), top: ids.into_iter().map(|id| (id, logprob(id))).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_come_first_and_the_lower_id_among_equals() {
        let row = [0.1f32, 0.3, 0.3, 0.2, 0.1].map(f32::ln);
        let likely = Likely::of(&row, 4, 3);
        assert!((likely.logprob - 0.1f64.ln()).abs() < 1e-6);
        assert_eq!(likely.top.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(Likely::of(&row, 0, 9).top.len(), 5);
        assert_eq!(Likely::of(&row, 0, 0).top, []);
    }
}
