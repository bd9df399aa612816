//! [`PrefixCache`]: key-value caches of recent prompts, so that shared prefixes are not prefilled again.
//!
//! Prompts are prefilled in chunks from position 0, and only whole chunks are shared. A position is therefore always
//! computed in a chunk of the same size, and an answer is bit for bit the same with and without a cached prefix.

use std::collections::VecDeque;

use crate::nn::Cache;

/// Key-value caches of recent prompts of one model.
#[derive(Debug)]
pub(super) struct PrefixCache {
    /// Tokens per prefill chunk.
    chunk: usize,
    /// Maximum size of all entries together in bytes.
    capacity: usize,
    /// The most recently used first.
    entries: VecDeque<(Vec<u32>, Cache)>,
}

impl PrefixCache {
    pub(super) fn new(chunk: usize, capacity: usize) -> Self {
        Self { chunk, capacity, entries: VecDeque::new() }
    }

    /// A cache of the longest cached prefix of `prompt`, and the prefix's length. `reach` is the number of positions of
    /// prompt and answer together. The prompt's last token is never part of it, since the logits after it are needed.
    pub(super) fn lookup(&mut self, prompt: &[u32], reach: usize) -> Option<(Cache, usize)> {
        let usable = |(tokens, cache): &(Vec<u32>, Cache)| {
            let len = self.whole_chunks(common_prefix(tokens, prompt).min(prompt.len() - 1));
            if cache.can_resume(len, reach) { len } else { 0 }
        };
        let (index, len) = self
            .entries
            .iter()
            .map(usable)
            .enumerate()
            .max_by_key(|(index, len)| (*len, usize::MAX - index))
            .filter(|(_, len)| *len > 0)?;
        let entry = self.entries.remove(index)?;
        let mut cache = entry.1.clone();
        self.entries.push_front(entry);
        cache.truncate(len).then_some((cache, len))
    }

    /// Adds the cache of a prefilled prompt, and evicts the least recently used entries that exceed the capacity.
    pub(super) fn insert(&mut self, prompt: &[u32], mut cache: Cache) {
        let tokens = &prompt[..self.whole_chunks(prompt.len().min(cache.len()))];
        if tokens.is_empty() || cache.bytes() > self.capacity {
            return;
        }
        if let Some(index) = self.entries.iter().position(|(known, _)| known.starts_with(tokens)) {
            self.entries.swap(0, index);
            return;
        }
        // A sliding window that has moved past the prompt's end has lost the prompt's keys.
        if !cache.truncate(tokens.len()) {
            return;
        }
        self.entries.retain(|(known, _)| !tokens.starts_with(known));
        self.entries.push_front((tokens.to_vec(), cache));
        while self.bytes() > self.capacity {
            self.entries.pop_back();
        }
    }

    /// Size of all entries in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.iter().map(|(_, cache)| cache.bytes()).sum()
    }

    /// `len` rounded down to whole chunks.
    fn whole_chunks(&self, len: usize) -> usize {
        len - len % self.chunk
    }
}

/// Length of the longest common prefix.
fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache that has advanced by `len` positions and holds no keys.
    fn cache(len: usize) -> Cache {
        let mut cache = Cache::new(1);
        cache.advance(len);
        cache
    }

    fn cached_len(prefixes: &mut PrefixCache, prompt: &[u32]) -> Option<usize> {
        prefixes.lookup(prompt, prompt.len() + 9).map(|(cache, len)| {
            assert_eq!(cache.len(), len);
            len
        })
    }

    #[test]
    fn only_whole_chunks_are_shared_and_never_the_last_token() {
        let mut prefixes = PrefixCache::new(4, 1 << 20);
        let prompt: Vec<u32> = (0..10).collect();
        prefixes.insert(&prompt, cache(15));
        assert_eq!(cached_len(&mut prefixes, &prompt), Some(8));
        assert_eq!(cached_len(&mut prefixes, &prompt[..9]), Some(8));
        assert_eq!(cached_len(&mut prefixes, &prompt[..8]), Some(4));
        assert_eq!(cached_len(&mut prefixes, &[0, 1, 2, 3, 9, 9]), Some(4));
        assert_eq!(cached_len(&mut prefixes, &[0, 1, 2, 9, 9, 9]), None);
    }

    #[test]
    fn a_longer_prompt_replaces_its_prefix() {
        let mut prefixes = PrefixCache::new(2, 1 << 20);
        prefixes.insert(&[1, 2, 3], cache(3));
        prefixes.insert(&[1, 2, 3, 4], cache(4));
        assert_eq!(prefixes.entries.len(), 1);
        prefixes.insert(&[1, 2], cache(2));
        prefixes.insert(&[7], cache(1));
        assert_eq!(prefixes.entries.len(), 1);
        assert_eq!(cached_len(&mut prefixes, &[1, 2, 3, 4, 5]), Some(4));
    }
}
