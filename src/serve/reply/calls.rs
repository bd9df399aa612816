//! [`Calls`]: tells calls of tools from text, as the answer is made.
//!
//! The form is that of Hermes and Qwen, `<tool_call>{"name": …, "arguments": {…}}</tool_call>`
//! (<https://huggingface.co/NousResearch/Hermes-2-Pro-Llama-3-8B>). What stands between the tags and is no call stays text.

use serde_json::{Map, Value, json};

use super::answer::token;
use crate::generate::ChatTemplate;

const BEGIN: &str = "<tool_call>";
const END: &str = "</tool_call>";

/// Whether a chat template teaches a model this form.
pub(in crate::serve) fn known_to(template: &ChatTemplate) -> bool {
    template.mentions(BEGIN)
}

/// A tool that the model calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// By which the tool's answer refers to it.
    pub(super) id: String,
    pub(super) name: String,
    /// A JSON object, as text.
    pub(super) arguments: String,
}

impl Call {
    /// In OpenAI's shape; chunks of a stream number their calls.
    pub(super) fn told(&self, number: Option<usize>) -> Value {
        let Self { id, name, arguments } = self;
        let mut object =
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        if let Some(number) = number {
            object["index"] = number.into();
        }
        object
    }
}

/// An answer's text so far, where it may still become a call.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// White space, and then what could be the beginning of a call.
    held: String,
    /// Whether there was a call.
    any: bool,
    /// Whether there was text.
    said: bool,
}

/// What a piece of an answer comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
}

impl Calls {
    /// A further piece of the answer, its last one if `last`.
    pub(super) fn push(&mut self, piece: &str, last: bool) -> Told {
        let mut told = Told::default();
        self.held.push_str(piece);
        while let Some(begin) = self.held.find(BEGIN) {
            let inside = &self.held[begin + BEGIN.len()..];
            let (inside, rest) = match inside.find(END) {
                Some(end) => (&inside[..end], &inside[end + END.len()..]),
                // Some models leave the end out.
                None if last => (inside, ""),
                None => break,
            };
            let rest = rest.to_owned();
            if let Some(call) = call(inside) {
                // White space around calls is no part of what is said.
                let before = self.held[..begin].trim_end().to_owned();
                self.say(&mut told, &before);
                told.calls.push(call);
                self.any = true;
            } else {
                let all = self.held[..self.held.len() - rest.len()].to_owned();
                self.say(&mut told, &all);
            }
            self.held = rest;
        }
        let free = if last { self.held.len() } else { self.free() };
        let rest = self.held.split_off(free);
        let mut free = std::mem::replace(&mut self.held, rest);
        if last && self.any {
            free.truncate(free.trim_end().len());
        }
        self.say(&mut told, &free);
        told
    }

    fn say(&mut self, told: &mut Told, text: &str) {
        let text = if self.any && !self.said { text.trim_start() } else { text };
        self.said |= !text.is_empty();
        told.text.push_str(text);
    }

    /// How much of the held text can be neither a call nor white space before one.
    fn free(&self) -> usize {
        let begins = self.held.find(BEGIN).or_else(|| {
            let tail = |len: &usize| self.held.ends_with(&BEGIN[..*len]);
            (1..BEGIN.len()).rev().find(tail).map(|len| self.held.len() - len)
        });
        self.held[..begins.unwrap_or(self.held.len())].trim_end().len()
    }
}

/// `{"name": …, "arguments": {…}}`.
fn call(text: &str) -> Option<Call> {
    let mut call: Map<String, Value> = serde_json::from_str(text.trim()).ok()?;
    let Some(Value::String(name)) = call.remove("name") else { return None };
    let arguments = match call.remove("arguments") {
        None => "{}".to_owned(),
        Some(Value::Object(arguments)) => Value::Object(arguments).to_string(),
        // As text, where the model has seen it so.
        Some(Value::String(text)) if serde_json::from_str::<Map<String, Value>>(&text).is_ok() => text,
        Some(_) => return None,
    };
    Some(Call { id: format!("call_{}", token()), name, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text and the calls of an answer that comes in pieces of so many characters.
    fn told(answer: &str, size: usize) -> (String, Vec<(String, String)>) {
        let mut calls = Calls::default();
        let (mut text, mut found) = (String::new(), Vec::new());
        let characters: Vec<char> = answer.chars().collect();
        let pieces: Vec<String> = characters.chunks(size).map(|piece| piece.iter().collect()).collect();
        for (number, piece) in pieces.iter().enumerate() {
            let told = calls.push(piece, number + 1 == pieces.len());
            text += &told.text;
            found.extend(told.calls.into_iter().map(|call| (call.name, call.arguments)));
        }
        (text, found)
    }

    #[track_caller]
    fn check(answer: &str, text: &str, calls: &[(&str, &str)]) {
        let calls: Vec<_> =
            calls.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        for size in 1..=answer.chars().count() {
            assert_eq!(told(answer, size), (text.to_owned(), calls.clone()), "in pieces of {size}");
        }
    }

    #[test]
    fn calls_are_told_from_text() {
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
    fn what_is_no_call_stays_text() {
        check(" Nothing to call here.\n\n", " Nothing to call here.\n\n", &[]);
        check("1 < 2 and <tool> and <tool_cal", "1 < 2 and <tool> and <tool_cal", &[]);
        check("a <tool_call> b </tool_call> c", "a <tool_call> b </tool_call> c", &[]);
        check("<tool_call>{\"name\": 1}</tool_call> ", "<tool_call>{\"name\": 1}</tool_call> ", &[]);
        check("<tool_call>{\"name\": \"a\", \"arg", "<tool_call>{\"name\": \"a\", \"arg", &[]);
    }

    #[test]
    fn each_call_has_an_id_of_its_own() {
        let told = Calls::default()
            .push("<tool_call>{\"name\":\"a\"}</tool_call><tool_call>{\"name\":\"a\"}</tool_call>", true);
        assert_ne!(told.calls[0].id, told.calls[1].id);
    }
}
