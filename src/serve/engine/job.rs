//! [`Job`]: a prompt and the answers requested for it.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

use super::event::Event;
use super::logit_adjustments::LogitAdjustments;
use crate::generate::Request;
use crate::serve::guide::Guide;

/// A command to the model thread.
pub(in crate::serve) enum Command {
    /// Queue a job.
    Run(Box<Job>),
    /// Fail every answer, also those of later jobs.
    AbortAll,
}

/// A prompt and the answers requested for it.
pub(in crate::serve) struct Job {
    /// Index of the model.
    pub(in crate::serve) model: usize,
    /// Index of the prompt within its request.
    pub(in crate::serve) prompt_index: usize,
    /// The prompt's tokens, at least one.
    pub(in crate::serve) prompt: Vec<u32>,
    /// One for each answer; at most as many as there are slots.
    pub(in crate::serve) choices: Vec<ChoiceJob>,
    /// Requests log-probabilities of the prompt itself, with this many alternatives per token.
    pub(in crate::serve) prompt_logprobs: Option<usize>,
    /// When the job fails if it is still unfinished.
    pub(in crate::serve) deadline: Instant,
    /// The client's address: clients take turns.
    pub(in crate::serve) client: String,
    /// Receives the events.
    pub(in crate::serve) events: UnboundedSender<Event>,
    /// The capacity reserved for the request; released when its last answer has ended.
    pub(in crate::serve) permit: Arc<OwnedSemaphorePermit>,
}

/// One answer to generate.
pub(in crate::serve) struct ChoiceJob {
    /// Index of the choice within the response.
    pub(in crate::serve) choice: usize,
    /// What to generate.
    pub(in crate::serve) request: Request,
    /// What is added to the logits before sampling.
    pub(in crate::serve) adjustments: LogitAdjustments,
    /// Constrains the answer to a JSON schema.
    pub(in crate::serve) guide: Option<Guide>,
    /// Requests log-probabilities, with this many alternatives per token.
    pub(in crate::serve) logprobs: Option<usize>,
}
