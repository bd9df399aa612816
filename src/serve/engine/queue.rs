//! [`Queue`]: what waits, one job of each client in turn.

use std::collections::VecDeque;

/// Things that wait, each for somebody.
#[derive(Debug)]
pub(super) struct Queue<T> {
    /// Those whose turn is nearest come first.
    clients: VecDeque<(String, VecDeque<T>)>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { clients: VecDeque::new() }
    }
}

impl<T> Queue<T> {
    pub(super) fn push(&mut self, client: &str, thing: T) {
        match self.clients.iter_mut().find(|(name, _)| name == client) {
            Some((_, things)) => things.push_back(thing),
            None => self.clients.push_back((client.to_owned(), VecDeque::from([thing]))),
        }
    }

    /// What is next, if `fits` takes it: what does not fit waits, and everything behind it, so that nothing waits for
    /// ever.
    pub(super) fn pop(&mut self, fits: impl FnOnce(&T) -> bool) -> Option<T> {
        let (client, mut things) = self.clients.pop_front()?;
        if !things.front().is_some_and(fits) {
            self.clients.push_front((client, things));
            return None;
        }
        let thing = things.pop_front();
        if !things.is_empty() {
            self.clients.push_back((client, things));
        }
        thing
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for (_, things) in &mut self.clients {
            things.retain(&mut keep);
        }
        self.clients.retain(|(_, things)| !things.is_empty());
    }

    pub(super) fn len(&self) -> usize {
        self.clients.iter().map(|(_, things)| things.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns() {
        let mut queue = Queue::default();
        for (client, thing) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)] {
            queue.push(client, thing);
        }
        assert_eq!(queue.len(), 6);
        queue.retain(|thing| *thing != 2);
        let order: Vec<i32> = std::iter::from_fn(|| queue.pop(|_| true)).collect();
        assert_eq!(order, [1, 4, 5, 3, 6]);
    }

    #[test]
    fn what_does_not_fit_keeps_its_turn() {
        let mut queue = Queue::default();
        queue.push("a", 8);
        queue.push("b", 1);
        assert_eq!(queue.pop(|size| *size < 5), None);
        assert_eq!(queue.pop(|size| *size < 9), Some(8));
        assert_eq!(queue.pop(|_| true), Some(1));
        assert_eq!(queue.pop(|_| true), None);
    }
}
