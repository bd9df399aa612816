//! [`Worker`]: the model thread's loop.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::UnboundedReceiver;

use super::batch_policy::BatchPolicy;
use super::event::{Event, Failure};
use super::fair_queue::FairQueue;
use super::job::{Command, Job};
use super::prefill::{Prefill, chunk_size};
use super::prefix_cache::PrefixCache;
use super::slot::{PromptContext, Slot};
use crate::generate::Error;
use crate::model::Model;
use crate::serve::metrics::Metrics;

/// How much the worker holds at once.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve) struct BatchLimits {
    /// Maximum number of sequences decoded concurrently.
    pub(in crate::serve) sequences: usize,
    /// Size of the prompt caches of all models together in bytes.
    pub(in crate::serve) prefix_cache_bytes: usize,
}

/// The models and all jobs: queued, in prefill, and being decoded.
pub(in crate::serve) struct Worker {
    models: Vec<Box<dyn Model>>,
    batch_policies: Vec<BatchPolicy>,
    prefix_caches: Vec<PrefixCache>,
    max_sequences: usize,
    queue: FairQueue<Box<Job>>,
    prefills: VecDeque<Prefill>,
    slots: Vec<Slot>,
    metrics: Arc<Metrics>,
    aborting: bool,
}

impl Worker {
    /// A worker without jobs. Runs trial batches through the models to measure their batch policies.
    pub(in crate::serve) fn new(
        models: Vec<Box<dyn Model>>,
        limits: BatchLimits,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Error> {
        let batch_policies = models
            .iter()
            .map(|model| BatchPolicy::measure(&**model, limits.sequences))
            .collect::<Result<_, _>>()?;
        let capacity = limits.prefix_cache_bytes / models.len().max(1);
        let prefix_caches = models.iter().map(|_| PrefixCache::new(chunk_size(), capacity)).collect();
        Ok(Self {
            models,
            batch_policies,
            prefix_caches,
            max_sequences: limits.sequences,
            queue: FairQueue::default(),
            prefills: VecDeque::new(),
            slots: Vec::new(),
            metrics,
            aborting: false,
        })
    }

    /// The batch policy of each model, for the log.
    pub(in crate::serve) fn batch_policies(&self) -> Vec<String> {
        self.batch_policies.iter().map(|policy| format!("{policy:?}")).collect()
    }

    /// Works until every sender of commands is gone.
    pub(in crate::serve) fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        loop {
            let idle = self.queue.len() + self.prefills.len() + self.slots.len() == 0;
            if idle {
                self.update_gauges();
                let Some(command) = commands.blocking_recv() else { return };
                self.handle(command);
            }
            while let Ok(command) = commands.try_recv() {
                self.handle(command);
            }
            self.drop_expired();
            self.admit();
            self.update_gauges();
            self.prefill_chunk();
            self.decode_step();
        }
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::AbortAll => self.aborting = true,
            Command::Run(job) => self.queue.push(&job.client.clone(), job),
        }
    }

    /// Drops jobs of disconnected clients and fails those past their deadline.
    fn drop_expired(&mut self) {
        let (now, aborting) = (Instant::now(), self.aborting);
        let failure = |deadline: Instant| match () {
            () if aborting => Some(Failure::ShuttingDown),
            () if deadline <= now => Some(Failure::TimedOut),
            () => None,
        };
        let keep = |job: &Job| {
            if let Some(failure) = failure(job.deadline) {
                // A client that has disconnected needs no error.
                let _ = job.events.send(Event::Failed(failure));
                return false;
            }
            !job.events.is_closed()
        };
        self.queue.retain(|job| keep(job));
        self.prefills.retain(|prefill| keep(&prefill.job));
        for slot in &mut self.slots {
            if let Some(failure) = failure(slot.deadline).filter(|_| !slot.is_done()) {
                slot.fail(failure);
            }
        }
        self.retire_done();
    }

    /// Frees the slots of finished answers, and keeps their prompts in the prefix cache.
    fn retire_done(&mut self) {
        let (done, running): (Vec<Slot>, Vec<Slot>) =
            std::mem::take(&mut self.slots).into_iter().partition(Slot::is_done);
        self.slots = running;
        for slot in done {
            let Slot { model, ref cache, .. } = slot;
            self.prefix_caches[model].insert(slot.prompt(), cache.clone());
        }
    }

    /// Starts the prefill of queued jobs as long as there are free slots for their answers.
    fn admit(&mut self) {
        loop {
            let reserved: usize = self.prefills.iter().map(|prefill| prefill.job.choices.len()).sum();
            let free = self.max_sequences.saturating_sub(self.slots.len() + reserved);
            let Some(job) = self.queue.pop(|job| job.choices.len() <= free) else { return };
            let answer = job.choices.iter().map(|choice| choice.request.max_tokens).max().unwrap_or(0);
            let reach = job.prompt.len().saturating_add(answer);
            let prefix = match job.prompt_logprobs {
                // The cache holds keys and values, not the logits that scoring needs.
                Some(_) => None,
                None => self.prefix_caches[job.model].lookup(&job.prompt, reach),
            };
            let (mut cache, cached) = prefix.unwrap_or_else(|| (self.models[job.model].cache(), 0));
            cache.expect(reach);
            self.prefills.push_back(Prefill::new(*job, cache, cached));
        }
    }

    /// Runs one chunk of the prompt whose turn it is.
    fn prefill_chunk(&mut self) {
        let Some(mut prefill) = self.prefills.pop_front() else { return };
        match prefill.run_chunk(&*self.models[prefill.job.model]) {
            Err(error) => {
                let _ = prefill.job.events.send(Event::Failed(error.into()));
            }
            Ok(None) => self.prefills.push_back(prefill),
            Ok(Some(logits)) => self.start_decoding(prefill, &logits),
        }
    }

    /// Gives each answer of a prefilled prompt a slot and its first token.
    fn start_decoding(&mut self, prefill: Prefill, logits: &[f32]) {
        let Prefill { job, cache, cached, logprobs, .. } = prefill;
        self.metrics.prompt_tokens.inc_by((job.prompt.len() - cached) as u64);
        self.metrics.cached_tokens.inc_by(cached as u64);
        let _ = job.events.send(Event::PromptRead { prompt_index: job.prompt_index, cached, logprobs });
        let context = PromptContext {
            model: job.model,
            deadline: job.deadline,
            events: job.events,
            permit: job.permit,
        };
        for choice in job.choices {
            let mut slot = Slot::new(choice, cache.clone(), context.clone());
            if !slot.is_done() {
                slot.advance(logits);
                self.metrics.generated_tokens.inc();
            }
            self.slots.push(slot);
        }
        self.retire_done();
    }

    /// Decodes one token of every running answer, those of one model in one batch.
    fn decode_step(&mut self) {
        for (index, model) in self.models.iter().enumerate() {
            let mut slots: Vec<&mut Slot> =
                self.slots.iter_mut().filter(|slot| slot.model == index && !slot.is_done()).collect();
            if slots.is_empty() {
                continue;
            }
            let tokens: Vec<u32> = slots.iter().map(|slot| slot.last_token).collect();
            let caches = slots.iter_mut().map(|slot| &mut slot.cache).collect();
            match self.batch_policies[index].step(&**model, &tokens, caches) {
                Ok(logits) => {
                    self.metrics.generated_tokens.inc_by(slots.len() as u64);
                    for (slot, row) in slots.iter_mut().zip(logits.chunks_exact(model.vocabulary().max(1))) {
                        slot.advance(row);
                    }
                }
                Err(error) => {
                    let failure = Failure::from(error);
                    for slot in slots {
                        slot.fail(failure.clone());
                    }
                }
            }
        }
        self.retire_done();
    }

    fn update_gauges(&self) {
        let gauge = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.metrics.queue_depth.set(gauge(self.queue.len()));
        self.metrics.active.set(gauge(self.slots.len() + self.prefills.len()));
        let slots: usize = self.slots.iter().map(|slot| slot.cache.bytes()).sum();
        let prefixes: usize = self.prefix_caches.iter().map(PrefixCache::bytes).sum();
        self.metrics.kv_cache_bytes.set(gauge(slots + prefixes));
    }
}
