//! [`FairQueue`]: a queue in which clients take turns.

use std::collections::VecDeque;

/// Queued items by client: one item of each client in turn.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    /// Clients in the order of their turns; none has an empty queue.
    clients: VecDeque<(String, VecDeque<T>)>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { clients: VecDeque::new() }
    }
}

impl<T> FairQueue<T> {
    pub(super) fn push(&mut self, client: &str, item: T) {
        match self.clients.iter_mut().find(|(name, _)| name == client) {
            Some((_, items)) => items.push_back(item),
            None => self.clients.push_back((client.to_owned(), VecDeque::from([item]))),
        }
    }

    /// The next item if `fits` accepts it. An item that does not fit blocks those behind it, so that a large one is
    /// not starved by small ones.
    pub(super) fn pop(&mut self, fits: impl FnOnce(&T) -> bool) -> Option<T> {
        let (client, mut items) = self.clients.pop_front()?;
        if !items.front().is_some_and(fits) {
            self.clients.push_front((client, items));
            return None;
        }
        let item = items.pop_front();
        if !items.is_empty() {
            self.clients.push_back((client, items));
        }
        item
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for (_, items) in &mut self.clients {
            items.retain(&mut keep);
        }
        self.clients.retain(|(_, items)| !items.is_empty());
    }

    pub(super) fn len(&self) -> usize {
        self.clients.iter().map(|(_, items)| items.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns() {
        let mut queue = FairQueue::default();
        for (client, item) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)] {
            queue.push(client, item);
        }
        assert_eq!(queue.len(), 6);
        queue.retain(|item| *item != 2);
        let order: Vec<i32> = std::iter::from_fn(|| queue.pop(|_| true)).collect();
        assert_eq!(order, [1, 4, 5, 3, 6]);
    }

    #[test]
    fn an_item_that_does_not_fit_keeps_its_turn() {
        let mut queue = FairQueue::default();
        queue.push("a", 8);
        queue.push("b", 1);
        assert_eq!(queue.pop(|size| *size < 5), None);
        assert_eq!(queue.pop(|size| *size < 9), Some(8));
        assert_eq!(queue.pop(|_| true), Some(1));
        assert_eq!(queue.pop(|_| true), None);
    }
}
