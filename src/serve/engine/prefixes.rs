//! [`Prefixes`]: caches of recent prompts, whose beginnings need not be read again.
//!
//! A prompt is read in chunks from its beginning, and only whole chunks are shared. So a position is always computed
//! in a piece of the same size, and an answer does not depend, by so much as a rounding, on what was asked before.

use std::collections::VecDeque;

use crate::nn::Cache;

/// Caches of recent prompts of one model.
#[derive(Debug)]
pub(super) struct Prefixes {
    chunk: usize,
    /// Bytes that they may hold together.
    room: usize,
    /// The latest comes first.
    held: VecDeque<(Vec<u32>, Cache)>,
}

impl Prefixes {
    pub(super) fn new(chunk: usize, room: usize) -> Self {
        Self { chunk, room, held: VecDeque::new() }
    }

    /// A cache with the longest known beginning of a prompt, and its length; with the answer there will be `reach`
    /// positions. The last token is never in it: somebody wants the logits after it.
    pub(super) fn find(&mut self, prompt: &[u32], reach: usize) -> Option<(Cache, usize)> {
        let usable = |(tokens, cache): &(Vec<u32>, Cache)| {
            let len = self.whole(common(tokens, prompt).min(prompt.len() - 1));
            if cache.can_resume(len, reach) { len } else { 0 }
        };
        let (at, len) = self
            .held
            .iter()
            .map(usable)
            .enumerate()
            .max_by_key(|(at, len)| (*len, usize::MAX - at))
            .filter(|(_, len)| *len > 0)?;
        let entry = self.held.remove(at)?;
        let mut cache = entry.1.clone();
        self.held.push_front(entry);
        cache.truncate(len).then_some((cache, len))
    }

    /// Keeps the cache of a prompt that was read.
    pub(super) fn keep(&mut self, prompt: &[u32], mut cache: Cache) {
        let tokens = &prompt[..self.whole(prompt.len().min(cache.len()))];
        if tokens.is_empty() || cache.bytes() > self.room {
            return;
        }
        if let Some(at) = self.held.iter().position(|(held, _)| held.starts_with(tokens)) {
            self.held.swap(0, at);
            return;
        }
        // Where a window has passed the prompt's end, its cache is of no use to others.
        if !cache.truncate(tokens.len()) {
            return;
        }
        self.held.retain(|(held, _)| !tokens.starts_with(held));
        self.held.push_front((tokens.to_vec(), cache));
        while self.bytes() > self.room {
            self.held.pop_back();
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.held.iter().map(|(_, cache)| cache.bytes()).sum()
    }

    /// The length of the whole chunks in `len` positions.
    fn whole(&self, len: usize) -> usize {
        len - len % self.chunk
    }
}

fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache that has seen so many positions and holds nothing.
    fn cache(len: usize) -> Cache {
        let mut cache = Cache::new(1);
        cache.advance(len);
        cache
    }

    fn found(prefixes: &mut Prefixes, prompt: &[u32]) -> Option<usize> {
        prefixes.find(prompt, prompt.len() + 9).map(|(cache, len)| {
            assert_eq!(cache.len(), len);
            len
        })
    }

    #[test]
    fn only_whole_chunks_are_shared_and_never_the_last_token() {
        let mut prefixes = Prefixes::new(4, 1 << 20);
        let prompt: Vec<u32> = (0..10).collect();
        prefixes.keep(&prompt, cache(15));
        assert_eq!(found(&mut prefixes, &prompt), Some(8));
        assert_eq!(found(&mut prefixes, &prompt[..9]), Some(8));
        assert_eq!(found(&mut prefixes, &prompt[..8]), Some(4));
        assert_eq!(found(&mut prefixes, &[0, 1, 2, 3, 9, 9]), Some(4));
        assert_eq!(found(&mut prefixes, &[0, 1, 2, 9, 9, 9]), None);
    }

    #[test]
    fn a_longer_prompt_takes_the_place_of_its_beginning() {
        let mut prefixes = Prefixes::new(2, 1 << 20);
        prefixes.keep(&[1, 2, 3], cache(3));
        prefixes.keep(&[1, 2, 3, 4], cache(4));
        assert_eq!(prefixes.held.len(), 1);
        prefixes.keep(&[1, 2], cache(2));
        prefixes.keep(&[7], cache(1));
        assert_eq!(prefixes.held.len(), 1);
        assert_eq!(found(&mut prefixes, &[1, 2, 3, 4, 5]), Some(4));
    }
}
