//! [`Worker`]: the model thread's loop.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::UnboundedReceiver;

use super::prefixes::Prefixes;
use super::queue::Queue;
use super::rows::Rows;
use super::slot::{Common, Slot};
use super::{Event, Failure, Job, Likely};
use crate::generate::Error;
use crate::model::{Model, run};
use crate::nn::Cache;
use crate::serve::metrics::Metrics;

/// What the engine is told.
pub(in crate::serve) enum Command {
    /// To answer.
    Work(Box<Job>),
    /// To answer nothing more.
    EndAll,
}

/// How much at once.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve) struct Limits {
    /// Answers in the making.
    pub(in crate::serve) batch: usize,
    /// Bytes of caches of earlier prompts.
    pub(in crate::serve) prefix_bytes: usize,
}

/// The models, and everything that is being done with them.
pub(in crate::serve) struct Worker {
    models: Vec<Box<dyn Model>>,
    rows: Vec<Rows>,
    prefixes: Vec<Prefixes>,
    batch: usize,
    waiting: Queue<Box<Job>>,
    reading: VecDeque<Reading>,
    slots: Vec<Slot>,
    metrics: Arc<Metrics>,
    ending: bool,
}

/// A prompt being read.
struct Reading {
    job: Job,
    cache: Cache,
    /// Tokens that were known from before.
    cached: usize,
    scores: Vec<Option<Likely>>,
    /// Logits after the last token that was read, where the prompt is scored.
    last: Vec<f32>,
}

impl Worker {
    /// Nothing to do yet. Tries the models, to find how many answers may be made together.
    pub(in crate::serve) fn new(
        models: Vec<Box<dyn Model>>,
        limits: Limits,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Error> {
        let rows = models.iter().map(|model| Rows::of(&**model, limits.batch)).collect::<Result<_, _>>()?;
        let room = limits.prefix_bytes / models.len().max(1);
        let prefixes = models.iter().map(|_| Prefixes::new(chunk(), room)).collect();
        Ok(Self {
            models,
            rows,
            prefixes,
            batch: limits.batch,
            waiting: Queue::default(),
            reading: VecDeque::new(),
            slots: Vec::new(),
            metrics,
            ending: false,
        })
    }

    /// How many answers are made together, for the log.
    pub(in crate::serve) fn together(&self) -> Vec<String> {
        self.rows.iter().map(|rows| format!("{rows:?}")).collect()
    }

    /// Works until nobody can ask any more.
    pub(in crate::serve) fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        loop {
            let idle = self.waiting.len() + self.reading.len() + self.slots.len() == 0;
            if idle {
                self.report();
                let Some(command) = commands.blocking_recv() else { return };
                self.obey(command);
            }
            while let Ok(command) = commands.try_recv() {
                self.obey(command);
            }
            self.sweep();
            self.admit();
            self.report();
            self.read();
            self.step();
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::EndAll => self.ending = true,
            Command::Work(job) => self.waiting.push(&job.client.clone(), job),
        }
    }

    /// Drops whatever nobody waits for and ends what is too late.
    fn sweep(&mut self) {
        let (now, ending) = (Instant::now(), self.ending);
        let over = |deadline: Instant| match () {
            () if ending => Some(Failure::Ending),
            () if deadline <= now => Some(Failure::Late),
            () => None,
        };
        let keep = |job: &Job| {
            if let Some(failure) = over(job.deadline) {
                // Whoever has gone is not told.
                let _ = job.events.send(Event::Failed(failure));
                return false;
            }
            !job.events.is_closed()
        };
        self.waiting.retain(|job| keep(job));
        self.reading.retain(|reading| keep(&reading.job));
        for slot in &mut self.slots {
            if let Some(failure) = over(slot.deadline).filter(|_| !slot.is_over()) {
                slot.fail(failure);
            }
        }
        self.retire();
    }

    /// Takes slots away from answers that are over, and keeps their prompts' caches.
    fn retire(&mut self) {
        let (over, on): (Vec<Slot>, Vec<Slot>) =
            std::mem::take(&mut self.slots).into_iter().partition(Slot::is_over);
        self.slots = on;
        for slot in over {
            let Slot { model, ref cache, .. } = slot;
            self.prefixes[model].keep(slot.prompt(), cache.clone());
        }
    }

    /// Begins to read what there is room for.
    fn admit(&mut self) {
        loop {
            let reading: usize = self.reading.iter().map(|reading| reading.job.drafts.len()).sum();
            let room = self.batch.saturating_sub(self.slots.len() + reading);
            let Some(job) = self.waiting.pop(|job| job.drafts.len() <= room) else { return };
            let answer = job.drafts.iter().map(|draft| draft.request.max_tokens).max().unwrap_or(0);
            let reach = job.prompt.len().saturating_add(answer);
            let known = match job.score {
                // Known beginnings have no logits any more.
                Some(_) => None,
                None => self.prefixes[job.model].find(&job.prompt, reach),
            };
            let (mut cache, cached) = known.unwrap_or_else(|| (self.models[job.model].cache(), 0));
            cache.expect(reach);
            let scores = Vec::with_capacity(job.score.map_or(0, |_| job.prompt.len()));
            self.reading.push_back(Reading { job: *job, cache, cached, scores, last: Vec::new() });
        }
    }

    /// Reads a chunk of the prompt whose turn it is.
    fn read(&mut self) {
        let Some(mut reading) = self.reading.pop_front() else { return };
        match reading.read(&*self.models[reading.job.model]) {
            Err(error) => {
                let _ = reading.job.events.send(Event::Failed(Failure::Broken(error.to_string())));
            }
            Ok(None) => self.reading.push_back(reading),
            Ok(Some(row)) => self.begin(reading, &row),
        }
    }

    /// A prompt has been read: its answers begin.
    fn begin(&mut self, reading: Reading, row: &[f32]) {
        let Reading { job, cache, cached, scores, .. } = reading;
        self.metrics.prompt_tokens.inc_by((job.prompt.len() - cached) as u64);
        self.metrics.cached_tokens.inc_by(cached as u64);
        let _ = job.events.send(Event::Read { number: job.number, cached, scores });
        let common =
            Common { model: job.model, deadline: job.deadline, events: job.events, place: job.place };
        for draft in job.drafts {
            let mut slot = Slot::new(draft, cache.clone(), common.clone());
            if !slot.is_over() {
                slot.advance(row);
                self.metrics.generated_tokens.inc();
            }
            self.slots.push(slot);
        }
        self.retire();
    }

    /// One step of all answers, those of one model together.
    fn step(&mut self) {
        for (number, model) in self.models.iter().enumerate() {
            let mut slots: Vec<&mut Slot> =
                self.slots.iter_mut().filter(|slot| slot.model == number && !slot.is_over()).collect();
            if slots.is_empty() {
                continue;
            }
            let tokens: Vec<u32> = slots.iter().map(|slot| slot.last).collect();
            let caches = slots.iter_mut().map(|slot| &mut slot.cache).collect();
            match self.rows[number].step(&**model, &tokens, caches) {
                Ok(logits) => {
                    self.metrics.generated_tokens.inc_by(slots.len() as u64);
                    for (slot, row) in slots.iter_mut().zip(logits.chunks_exact(model.vocabulary().max(1))) {
                        slot.advance(row);
                    }
                }
                Err(error) => {
                    for slot in slots {
                        slot.fail(Failure::Broken(error.to_string()));
                    }
                }
            }
        }
        self.retire();
    }

    fn report(&self) {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.metrics.waiting.set(count(self.waiting.len()));
        self.metrics.active.set(count(self.slots.len() + self.reading.len()));
        let live: usize = self.slots.iter().map(|slot| slot.cache.bytes()).sum();
        let kept: usize = self.prefixes.iter().map(Prefixes::bytes).sum();
        self.metrics.cache_bytes.set(count(live + kept));
    }
}

impl Reading {
    /// Reads a chunk; gives the logits after the last token when it was the last chunk.
    fn read(&mut self, model: &dyn Model) -> Result<Option<Vec<f32>>, Error> {
        let done = self.cache.len();
        let end = self.job.prompt.len().min(done + chunk());
        let piece = &self.job.prompt[done..end];
        if let Some(count) = self.job.score {
            let (scores, last, prompt) = (&mut self.scores, &mut self.last, &self.job.prompt);
            run::score(model, &mut self.cache, piece, chunk(), |_, logits: &[f32]| {
                if scores.is_empty() {
                    scores.push(None);
                }
                let rows = logits.chunks_exact(model.vocabulary().max(1));
                for (row, next) in rows.clone().zip(prompt.iter().skip(done + 1)) {
                    scores.push(Some(Likely::of(row, *next, count)));
                }
                *last = rows.last().map(<[f32]>::to_vec).unwrap_or_default();
                Ok::<(), Error>(())
            })?;
            return Ok((end == prompt.len()).then(|| std::mem::take(last)));
        }
        let logits = run::prefill(model, &mut self.cache, piece, chunk(), |_| ControlFlow::Continue(()))?;
        match logits {
            Some(logits) if end == self.job.prompt.len() => Ok(Some(logits.values()?)),
            _ => Ok(None),
        }
    }
}

/// Tokens of a prompt that are read between two steps. On a GPU fewer than `generate` takes at once, so that answers
/// under way go on.
fn chunk() -> usize {
    run::chunk().min(512)
}
