//! [`Prefill`]: a prompt being run through the model, one chunk between two decode steps.

use std::ops::ControlFlow;

use super::job::Job;
use super::logprob::TokenLogprob;
use crate::generate::Error;
use crate::model::{Model, run};
use crate::nn::Cache;

/// A prompt being prefilled.
pub(super) struct Prefill {
    pub(super) job: Job,
    pub(super) cache: Cache,
    /// Tokens taken from the prompt cache.
    pub(super) cached: usize,
    /// Log-probabilities of the prompt so far, if requested.
    pub(super) logprobs: Vec<Option<TokenLogprob>>,
    /// Logits after the last token so far, if the prompt is scored.
    last_logits: Vec<f32>,
}

impl Prefill {
    /// Starts with a cache that holds the first `cached` tokens of the job's prompt.
    pub(super) fn new(job: Job, cache: Cache, cached: usize) -> Self {
        let logprobs = Vec::with_capacity(job.prompt_logprobs.map_or(0, |_| job.prompt.len()));
        Self { job, cache, cached, logprobs, last_logits: Vec::new() }
    }

    /// Runs the next chunk; returns the logits after the prompt's last token if that was the last chunk.
    pub(super) fn run_chunk(&mut self, model: &dyn Model) -> Result<Option<Vec<f32>>, Error> {
        let done = self.cache.len();
        let end = self.job.prompt.len().min(done + chunk_size());
        if let Some(top_count) = self.job.prompt_logprobs {
            return self.score_chunk(model, done, end, top_count);
        }
        let chunk = &self.job.prompt[done..end];
        let logits =
            run::prefill(model, &mut self.cache, chunk, chunk_size(), |_| ControlFlow::Continue(()))?;
        match logits {
            Some(logits) if end == self.job.prompt.len() => Ok(Some(logits.values()?)),
            _ => Ok(None),
        }
    }

    fn score_chunk(
        &mut self,
        model: &dyn Model,
        done: usize,
        end: usize,
        top_count: usize,
    ) -> Result<Option<Vec<f32>>, Error> {
        let Self { job, cache, logprobs, last_logits, .. } = self;
        let prompt = &job.prompt;
        run::score(model, cache, &prompt[done..end], chunk_size(), |_, logits: &[f32]| {
            if logprobs.is_empty() {
                logprobs.push(None);
            }
            let rows = logits.chunks_exact(model.vocabulary().max(1));
            for (row, next) in rows.clone().zip(prompt.iter().skip(done + 1)) {
                logprobs.push(Some(TokenLogprob::from_logits(row, *next, top_count)));
            }
            *last_logits = rows.last().map(<[f32]>::to_vec).unwrap_or_default();
            Ok::<(), Error>(())
        })?;
        Ok((end == prompt.len()).then(|| std::mem::take(last_logits)))
    }
}

/// Prompt tokens per chunk. On a GPU fewer than in `generate`, so that running answers are not delayed.
pub(super) fn chunk_size() -> usize {
    run::chunk().min(512)
}
