//! The engine: one thread that owns the models and all that MLX computes.
//!
//! ```text
//! handlers ── Job ──▶ queue ──admit──▶ reading (a chunk of one prompt) ──▶ slots (one step of all) ── Event ──▶ handlers
//! ```
//!
//! A chunk of a prompt and a step of all answers alternate, so that a long prompt holds up nobody. Events go through
//! unbounded channels, which the number of tokens bounds: a client that reads slowly holds up nobody either. A client
//! that goes away drops its channel, and its answers end before the next step.

mod adjust;
mod job;
mod prefixes;
mod queue;
mod rows;
mod slot;
mod worker;

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) use adjust::Adjust;
pub(super) use job::{Draft, Event, Failure, Job, Likely, Said};
pub(super) use worker::{Command, Limits, Worker};

/// The handlers' end.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    commands: UnboundedSender<Command>,
    places: Arc<Semaphore>,
    capacity: usize,
}

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Too many wait already.
    Full,
    /// It asks for more answers than there will ever be room for.
    TooMany { answers: usize, capacity: usize },
    /// The engine has ended.
    Ended,
}

impl Engine {
    /// An engine, and what its thread needs: at most `capacity` answers at once, those that wait included.
    pub(super) fn new(capacity: usize) -> (Self, tokio::sync::mpsc::UnboundedReceiver<Command>) {
        let (commands, receiver) = unbounded_channel();
        (Self { commands, places: Arc::new(Semaphore::new(capacity)), capacity }, receiver)
    }

    /// Room for so many answers, kept until it is dropped.
    pub(super) fn reserve(&self, answers: usize) -> Result<Arc<OwnedSemaphorePermit>, Refused> {
        let count = u32::try_from(answers).unwrap_or(u32::MAX);
        if answers > self.capacity {
            return Err(Refused::TooMany { answers, capacity: self.capacity });
        }
        match Arc::clone(&self.places).try_acquire_many_owned(count) {
            Ok(permit) => Ok(Arc::new(permit)),
            Err(_) => Err(Refused::Full),
        }
    }

    /// Hands over a job.
    pub(super) fn submit(&self, job: Job) -> Result<(), Refused> {
        self.commands.send(Command::Work(Box::new(job))).map_err(|_| Refused::Ended)
    }

    /// Ends every answer, and those still to come, with an error.
    pub(super) fn end_all(&self) {
        // An engine that is gone has ended everything already.
        let _ = self.commands.send(Command::EndAll);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_and_no_more() {
        let (engine, _commands) = Engine::new(3);
        assert_eq!(engine.reserve(4).unwrap_err(), Refused::TooMany { answers: 4, capacity: 3 });
        let held = engine.reserve(2).unwrap();
        assert_eq!(engine.reserve(2).unwrap_err(), Refused::Full);
        drop(held);
        assert!(engine.reserve(3).is_ok());
    }
}
