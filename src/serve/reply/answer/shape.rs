//! The shape of an [`Answer`]: the objects that OpenAI's interface has for it, whole and in chunks.

use serde_json::{Value, json};

use super::super::logprobs::{self, Offsets};
use super::{Answer, Choice};
use crate::generate::FinishReason;

impl Answer {
    /// The last chunk of a stream.
    pub(in crate::serve::reply) fn usage_chunk(&self) -> Value {
        let kind = if self.chat { "chat.completion.chunk" } else { "text_completion" };
        self.object(kind, &json!([]), Some(self.usage()))
    }

    /// A chunk of one choice.
    pub(super) fn chunk(
        &self,
        place: usize,
        delta: &Value,
        finish: Option<FinishReason>,
        told: &Value,
    ) -> Value {
        let finish = finish.map(|finish| self.choices[place].reason(finish));
        let (kind, field) =
            if self.chat { ("chat.completion.chunk", "delta") } else { ("text_completion", "text") };
        let choice = json!({"index": place, (field): delta, "logprobs": told, "finish_reason": finish});
        self.object(kind, &json!([choice]), None)
    }

    /// One choice of a whole reply.
    pub(super) fn choice(&self, place: usize) -> Value {
        let choice = &self.choices[place];
        let finish = choice.finish.map(|finish| choice.reason(finish));
        if self.chat {
            let told = if self.with_logprobs {
                logprobs::chat(&self.tokenizer, &choice.likely)
            } else {
                Value::Null
            };
            let mut message = json!({"role": "assistant", "content": choice.text, "refusal": null});
            if !choice.calls.is_empty() {
                message["tool_calls"] = choice.calls.iter().map(|call| call.told(None)).collect();
                if choice.text.is_empty() {
                    message["content"] = Value::Null;
                }
            }
            return json!({"index": place, "message": message, "logprobs": told, "finish_reason": finish});
        }
        let told = if self.with_logprobs {
            let prompt = self.prompts.get(place / self.n).map_or(&[][..], |prompt| &prompt.ids);
            let before = prompt.iter().copied().zip(choice.scores.iter().map(Option::as_ref));
            let after = choice.likely.iter().map(|likely| (likely.token, Some(likely)));
            let all: Vec<_> = before.chain(after).collect();
            logprobs::completion(&self.tokenizer, &all, &mut Offsets::new(&self.tokenizer))
        } else {
            Value::Null
        };
        json!({"index": place, "text": choice.text, "logprobs": told, "finish_reason": finish})
    }

    /// What every reply and chunk has around its choices.
    pub(super) fn object(&self, kind: &str, choices: &Value, usage: Option<Value>) -> Value {
        let mut object = json!({
            "id": self.id,
            "object": kind,
            "created": self.app.started + self.app_age(),
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
        });
        if let Some(usage) = usage {
            object["usage"] = usage;
        }
        object
    }

    /// Seconds from the server's start to this request.
    fn app_age(&self) -> u64 {
        self.begin.saturating_duration_since(self.app.clock).as_secs()
    }

    pub(super) fn usage(&self) -> Value {
        let prompt: usize = self.prompts.iter().map(|prompt| prompt.ids.len()).sum();
        let answer: usize = self.choices.iter().map(|choice| choice.tokens).sum();
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        })
    }
}

impl Choice {
    /// Why it ended, in OpenAI's words.
    fn reason(&self, finish: FinishReason) -> &'static str {
        match finish {
            FinishReason::Stop if !self.calls.is_empty() => "tool_calls",
            finish => finish.name(),
        }
    }
}
