//! [`Vocabulary`]: a tokenizer as llguidance sees it.

use std::sync::Arc;

use llguidance::toktrie::{TokRxInfo, TokTrie, TokenizerEnv};

use crate::generate::Tokenizer;

/// A tokenizer and the trie of its tokens.
pub(super) struct Vocabulary {
    trie: TokTrie,
    tokenizer: Arc<Tokenizer>,
}

impl Vocabulary {
    /// The first `count` tokens of a tokenizer. `eos` are the end-of-text tokens, `end` is the one that the library
    /// uses.
    pub(super) fn new(tokenizer: &Arc<Tokenizer>, eos: &[u32], end: u32, count: u32) -> Self {
        let tokens: Vec<Vec<u8>> = (0..count).map(|id| token_bytes(tokenizer, eos, id)).collect();
        let trie = TokTrie::from(&TokRxInfo::new(count, end), &tokens);
        Self { trie, tokenizer: Arc::clone(tokenizer) }
    }
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.tokenizer.encode(text, false).unwrap_or_default()
        })
    }

    /// Only relevant where the library forces tokens without the model, which the engine never does.
    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

/// The bytes of a token. Special tokens are marked, so that no text can match them.
fn token_bytes(tokenizer: &Tokenizer, eos: &[u32], id: u32) -> Vec<u8> {
    let bytes = tokenizer.bytes(id);
    if bytes.is_empty() || tokenizer.is_special(id) || eos.contains(&id) {
        let mut marked = vec![TokTrie::SPECIAL_TOKEN_MARKER];
        if bytes.is_empty() {
            marked.extend(format!("<unknown {id}>").bytes());
        }
        marked.extend(bytes);
        return marked;
    }
    bytes
}
