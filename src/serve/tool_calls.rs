//! [`ToolCallParser`]: separates tool calls from text while an answer is generated.
//!
//! The format is that of Hermes and Qwen, `<tool_call>{"name": …, "arguments": {…}}</tool_call>`
//! (<https://huggingface.co/NousResearch/Hermes-2-Pro-Llama-3-8B>). Tagged text that is not a valid call remains text.

use serde_json::{Map, Value, json};

use super::random_id::random_id;
use crate::generate::ChatTemplate;

const OPEN_TAG: &str = "<tool_call>";
const CLOSE_TAG: &str = "</tool_call>";

/// Whether a chat template tells the model to write calls in this format.
pub(super) fn template_uses_format(template: &ChatTemplate) -> bool {
    template.contains(OPEN_TAG)
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolCall {
    /// The id by which the tool's result refers to the call.
    pub(super) id: String,
    pub(super) name: String,
    /// A JSON object as text.
    pub(super) arguments: String,
}

impl ToolCall {
    /// The call as the API represents it; calls in chunks of a stream have an `index`.
    pub(super) fn json(&self, index: Option<usize>) -> Value {
        let Self { id, name, arguments } = self;
        let mut object =
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        if let Some(index) = index {
            object["index"] = index.into();
        }
        object
    }
}

/// Text and calls that are complete.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
}

/// Parses an answer that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct ToolCallParser {
    /// Text that may still belong to a call: white space, then a prefix of a call.
    held: String,
    /// Whether a call was found.
    found_call: bool,
    /// Whether any text was returned.
    returned_text: bool,
}

impl ToolCallParser {
    /// Parses a further piece of the answer; `last` if no piece follows.
    pub(super) fn push(&mut self, piece: &str, last: bool) -> Parsed {
        let mut parsed = Parsed::default();
        self.held.push_str(piece);
        while let Some(begin) = self.held.find(OPEN_TAG) {
            let inside = &self.held[begin + OPEN_TAG.len()..];
            let (inside, rest) = match inside.find(CLOSE_TAG) {
                Some(end) => (&inside[..end], &inside[end + CLOSE_TAG.len()..]),
                // Some models omit the closing tag.
                None if last => (inside, ""),
                None => break,
            };
            let rest = rest.to_owned();
            if let Some(call) = parse_call(inside) {
                // White space around calls is not part of the text.
                let before = self.held[..begin].trim_end().to_owned();
                self.push_text(&mut parsed, &before);
                parsed.calls.push(call);
                self.found_call = true;
            } else {
                let all = self.held[..self.held.len() - rest.len()].to_owned();
                self.push_text(&mut parsed, &all);
            }
            self.held = rest;
        }
        let len = if last { self.held.len() } else { self.text_len() };
        let rest = self.held.split_off(len);
        let mut text = std::mem::replace(&mut self.held, rest);
        if last && self.found_call {
            text.truncate(text.trim_end().len());
        }
        self.push_text(&mut parsed, &text);
        parsed
    }

    fn push_text(&mut self, parsed: &mut Parsed, text: &str) {
        let text = if self.found_call && !self.returned_text { text.trim_start() } else { text };
        self.returned_text |= !text.is_empty();
        parsed.text.push_str(text);
    }

    /// Length of the held text that is neither part of a call nor white space before one.
    fn text_len(&self) -> usize {
        let call = self.held.find(OPEN_TAG).or_else(|| {
            let tail = |len: &usize| self.held.ends_with(&OPEN_TAG[..*len]);
            (1..OPEN_TAG.len()).rev().find(tail).map(|len| self.held.len() - len)
        });
        self.held[..call.unwrap_or(self.held.len())].trim_end().len()
    }
}

/// Parses `{"name": …, "arguments": {…}}`.
fn parse_call(text: &str) -> Option<ToolCall> {
    let mut call: Map<String, Value> = serde_json::from_str(text.trim()).ok()?;
    let Some(Value::String(name)) = call.remove("name") else { return None };
    let arguments = match call.remove("arguments") {
        None => "{}".to_owned(),
        Some(Value::Object(arguments)) => Value::Object(arguments).to_string(),
        // Models that saw arguments as text in their prompt write them as text.
        Some(Value::String(text)) if serde_json::from_str::<Map<String, Value>>(&text).is_ok() => text,
        Some(_) => return None,
    };
    Some(ToolCall { id: format!("call_{}", random_id()), name, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text and the calls of an answer that arrives in pieces of `size` characters.
    fn parse(answer: &str, size: usize) -> (String, Vec<(String, String)>) {
        let mut parser = ToolCallParser::default();
        let (mut text, mut found) = (String::new(), Vec::new());
        let characters: Vec<char> = answer.chars().collect();
        let pieces: Vec<String> = characters.chunks(size).map(|piece| piece.iter().collect()).collect();
        for (number, piece) in pieces.iter().enumerate() {
            let parsed = parser.push(piece, number + 1 == pieces.len());
            text += &parsed.text;
            found.extend(parsed.calls.into_iter().map(|call| (call.name, call.arguments)));
        }
        (text, found)
    }

    #[track_caller]
    fn check(answer: &str, text: &str, calls: &[(&str, &str)]) {
        let calls: Vec<_> =
            calls.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        for size in 1..=answer.chars().count() {
            assert_eq!(parse(answer, size), (text.to_owned(), calls.clone()), "in pieces of {size}");
        }
    }

    #[test]
    fn calls_are_separated_from_text() {
        check(
            "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"東京\", \"days\": [1, 2]}}\n</tool_call>",
            "Let me see.",
            &[("weather", r#"{"city":"東京","days":[1,2]}"#)],
        );
        check(
            "<tool_call>{\"name\": \"a\"}</tool_call>\n<tool_call>{\"name\": \"b\", \"arguments\": \"{\\\"x\\\": 1}\"}</tool_call>\n",
            "",
            &[("a", "{}"), ("b", "{\"x\": 1}")],
        );
        check("<tool_call>{\"name\": \"a\", \"arguments\": {}}", "", &[("a", "{}")]);
        check("<tool_call>{\"name\": \"a\"}</tool_call>\n\nOne two. ", "One two.", &[("a", "{}")]);
        check("One\n<tool_call>{\"name\": \"a\"}</tool_call>\ntwo  three", "One\ntwo  three", &[("a", "{}")]);
    }

    #[test]
    fn invalid_calls_remain_text() {
        check(" Nothing to call here.\n\n", " Nothing to call here.\n\n", &[]);
        check("1 < 2 and <tool> and <tool_cal", "1 < 2 and <tool> and <tool_cal", &[]);
        check("a <tool_call> b </tool_call> c", "a <tool_call> b </tool_call> c", &[]);
        check("<tool_call>{\"name\": 1}</tool_call> ", "<tool_call>{\"name\": 1}</tool_call> ", &[]);
        check("<tool_call>{\"name\": \"a\", \"arg", "<tool_call>{\"name\": \"a\", \"arg", &[]);
    }

    #[test]
    fn each_call_has_its_own_id() {
        let parsed = ToolCallParser::default()
            .push("<tool_call>{\"name\":\"a\"}</tool_call><tool_call>{\"name\":\"a\"}</tool_call>", true);
        assert_ne!(parsed.calls[0].id, parsed.calls[1].id);
    }
}
