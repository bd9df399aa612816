//! [`Engine`]: the handlers' end of the engine.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::job::{Command, Job};

/// Sends commands to the model thread and bounds how many answers are queued or running.
#[derive(Debug, Clone)]
pub(in crate::serve) struct Engine {
    commands: UnboundedSender<Command>,
    permits: Arc<Semaphore>,
    capacity: usize,
}

/// Why the engine rejects a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::serve) enum Rejection {
    /// The queue is full.
    #[error("the queue is full")]
    QueueFull,
    /// The request asks for more answers than the queue can ever hold.
    #[error("{answers} answers exceed this server's capacity of {capacity}")]
    TooManyAnswers {
        /// Answers requested.
        answers: usize,
        /// Answers that the server queues or runs at most.
        capacity: usize,
    },
    /// The model thread has ended.
    #[error("the engine has stopped")]
    Stopped,
}

impl Engine {
    /// An engine that queues and runs at most `capacity` answers, and the commands for its [`Worker`](super::Worker).
    pub(in crate::serve) fn new(capacity: usize) -> (Self, UnboundedReceiver<Command>) {
        let (commands, receiver) = unbounded_channel();
        (Self { commands, permits: Arc::new(Semaphore::new(capacity)), capacity }, receiver)
    }

    /// Reserves capacity for `answers` answers until the permit is dropped.
    pub(in crate::serve) fn reserve(&self, answers: usize) -> Result<Arc<OwnedSemaphorePermit>, Rejection> {
        let count = u32::try_from(answers).unwrap_or(u32::MAX);
        if answers > self.capacity {
            return Err(Rejection::TooManyAnswers { answers, capacity: self.capacity });
        }
        match Arc::clone(&self.permits).try_acquire_many_owned(count) {
            Ok(permit) => Ok(Arc::new(permit)),
            Err(_) => Err(Rejection::QueueFull),
        }
    }

    /// Queues a job.
    pub(in crate::serve) fn submit(&self, job: Job) -> Result<(), Rejection> {
        self.commands.send(Command::Run(Box::new(job))).map_err(|_| Rejection::Stopped)
    }

    /// Fails every queued and running answer, and every later one.
    pub(in crate::serve) fn abort_all(&self) {
        // A model thread that has ended has no answers left.
        let _ = self.commands.send(Command::AbortAll);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_never_exceed_the_capacity() {
        let (engine, _commands) = Engine::new(3);
        assert_eq!(engine.reserve(4).unwrap_err(), Rejection::TooManyAnswers { answers: 4, capacity: 3 });
        let held = engine.reserve(2).unwrap();
        assert_eq!(engine.reserve(2).unwrap_err(), Rejection::QueueFull);
        drop(held);
        assert!(engine.reserve(3).is_ok());
    }
}
