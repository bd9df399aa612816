//! [`Choice`]: one choice of a response, accumulated from the engine's events, and its JSON.

use std::sync::Arc;

use serde_json::{Value, json};

use super::logprobs::{self, TextOffsets};
use crate::generate::{FinishReason, Tokenizer};
use crate::serve::endpoint::Endpoint;
use crate::serve::engine::{TokenDelta, TokenLogprob};
use crate::serve::tool_calls::{Parsed, ToolCall, ToolCallParser};

/// One choice of a response.
pub(super) struct Choice {
    index: usize,
    endpoint: Endpoint,
    with_logprobs: bool,
    tokenizer: Arc<Tokenizer>,
    /// Separates tool calls from text; `None` where no tools may be called.
    parser: Option<ToolCallParser>,
    text: String,
    tool_calls: Vec<ToolCall>,
    token_count: usize,
    logprobs: Vec<TokenLogprob>,
    /// Log-probabilities of the echoed prompt.
    prompt_logprobs: Vec<Option<TokenLogprob>>,
    offsets: TextOffsets,
    finish: Option<FinishReason>,
}

impl Choice {
    /// A choice without text.
    pub(super) fn new(
        index: usize,
        endpoint: Endpoint,
        with_logprobs: bool,
        parse_tool_calls: bool,
        tokenizer: &Arc<Tokenizer>,
    ) -> Self {
        Self {
            index,
            endpoint,
            with_logprobs,
            tokenizer: Arc::clone(tokenizer),
            parser: parse_tool_calls.then(ToolCallParser::default),
            text: String::new(),
            tool_calls: Vec::new(),
            token_count: 0,
            logprobs: Vec::new(),
            prompt_logprobs: Vec::new(),
            offsets: TextOffsets::new(tokenizer),
            finish: None,
        }
    }

    /// Number of generated tokens.
    pub(super) fn token_count(&self) -> usize {
        self.token_count
    }

    /// Whether the answer is complete.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The first chunk of a chat.
    pub(super) fn role_chunk(&self) -> Value {
        self.chunk(&json!({"role": "assistant", "content": ""}), &Value::Null)
    }

    /// Prepends the prompt to the answer; returns the chunk with it.
    pub(super) fn echo(&mut self, prompt: &[u32], text: &str, logprobs: &[Option<TokenLogprob>]) -> Value {
        let mut logprobs_json = Value::Null;
        if self.with_logprobs {
            logprobs.clone_into(&mut self.prompt_logprobs);
            let tokens: Vec<(u32, Option<&TokenLogprob>)> =
                prompt.iter().copied().zip(logprobs.iter().map(Option::as_ref)).collect();
            logprobs_json = logprobs::completion(&self.tokenizer, &tokens, &mut self.offsets);
        }
        self.text.push_str(text);
        self.chunk(&text.into(), &logprobs_json)
    }

    /// Appends a token; returns the chunk for it unless there is nothing to send yet.
    pub(super) fn push(&mut self, delta: TokenDelta) -> Option<Value> {
        let TokenDelta { choice: _, token, text, logprob, finish } = delta;
        self.token_count += usize::from(token.is_some());
        self.finish = finish;
        let Parsed { text, calls } = match &mut self.parser {
            Some(parser) => parser.push(&text, finish.is_some()),
            None => Parsed { text, calls: Vec::new() },
        };
        self.text.push_str(&text);
        let first_new = self.tool_calls.len();
        self.tool_calls.extend(calls);
        let new_calls: Vec<Value> = self
            .tool_calls
            .iter()
            .enumerate()
            .skip(first_new)
            .map(|(index, call)| call.json(Some(index)))
            .collect();
        let logprobs = logprob.map_or(Value::Null, |logprob| self.push_logprob(logprob));
        if text.is_empty() && new_calls.is_empty() && finish.is_none() && logprobs.is_null() {
            return None;
        }
        let mut content = match self.endpoint {
            Endpoint::Chat if text.is_empty() => json!({}),
            Endpoint::Chat => json!({"content": text}),
            Endpoint::Completion => text.into(),
        };
        if !new_calls.is_empty() {
            content["tool_calls"] = new_calls.into();
        }
        Some(self.chunk(&content, &logprobs))
    }

    fn push_logprob(&mut self, logprob: TokenLogprob) -> Value {
        let json = match self.endpoint {
            Endpoint::Chat => logprobs::chat(&self.tokenizer, std::slice::from_ref(&logprob)),
            Endpoint::Completion => {
                let tokens = [(logprob.token, Some(&logprob))];
                logprobs::completion(&self.tokenizer, &tokens, &mut self.offsets)
            }
        };
        self.logprobs.push(logprob);
        json
    }

    fn chunk(&self, content: &Value, logprobs: &Value) -> Value {
        let field = match self.endpoint {
            Endpoint::Chat => "delta",
            Endpoint::Completion => "text",
        };
        json!({
            "index": self.index, (field): content, "logprobs": logprobs, "finish_reason": self.finish_reason(),
        })
    }

    /// The choice of a whole response, an answer to `prompt`.
    pub(super) fn json(&self, prompt: &[u32]) -> Value {
        let (field, content) = match self.endpoint {
            Endpoint::Chat => ("message", self.message()),
            Endpoint::Completion => ("text", self.text.as_str().into()),
        };
        json!({
            "index": self.index,
            (field): content,
            "logprobs": self.logprobs_json(prompt),
            "finish_reason": self.finish_reason(),
        })
    }

    fn message(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
        if !self.tool_calls.is_empty() {
            message["tool_calls"] = self.tool_calls.iter().map(|call| call.json(None)).collect();
            if self.text.is_empty() {
                message["content"] = Value::Null;
            }
        }
        message
    }

    fn logprobs_json(&self, prompt: &[u32]) -> Value {
        if !self.with_logprobs {
            return Value::Null;
        }
        match self.endpoint {
            Endpoint::Chat => logprobs::chat(&self.tokenizer, &self.logprobs),
            Endpoint::Completion => {
                let echoed = prompt.iter().copied().zip(self.prompt_logprobs.iter().map(Option::as_ref));
                let generated = self.logprobs.iter().map(|logprob| (logprob.token, Some(logprob)));
                let tokens: Vec<_> = echoed.chain(generated).collect();
                logprobs::completion(&self.tokenizer, &tokens, &mut TextOffsets::new(&self.tokenizer))
            }
        }
    }

    fn finish_reason(&self) -> Option<&'static str> {
        self.finish.map(|finish| match finish {
            FinishReason::Stop if !self.tool_calls.is_empty() => "tool_calls",
            finish => finish.name(),
        })
    }
}
