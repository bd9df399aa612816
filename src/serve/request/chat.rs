//! [`ChatRequest`]: what `/v1/chat/completions` takes beside the common fields.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::common::refuse_unless;
use crate::generate::{Extra, Message};
use crate::serve::error::ApiError;

/// Fields of a chat request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct ChatRequest {
    /// The conversation so far.
    #[schema(value_type = Vec<Object>, min_items = 1)]
    messages: Vec<Map<String, Value>>,
    /// Whether to tell the log-probability of every token.
    logprobs: Option<bool>,
    /// So many of the likeliest tokens at every place.
    #[schema(maximum = 20)]
    top_logprobs: Option<usize>,
    /// Handed to the chat template.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Map<String, Value>>>,
    /// `none` keeps the tools from the template.
    #[schema(value_type = Option<String>)]
    tool_choice: Option<Value>,
    /// Further variables for the chat template.
    #[schema(value_type = Option<Object>)]
    chat_template_kwargs: Option<Map<String, Value>>,
    /// Handed to the chat template.
    reasoning_effort: Option<String>,
    // Without any effect on the answer.
    #[expect(dead_code, reason = "accepted without any effect")]
    parallel_tool_calls: Option<bool>,
    #[expect(dead_code, reason = "accepted without any effect")]
    #[schema(value_type = Option<Object>)]
    prediction: Option<Map<String, Value>>,
    // Known, and not supported.
    #[schema(value_type = Option<Vec<String>>)]
    modalities: Option<Value>,
    #[schema(value_type = Option<Object>)]
    audio: Option<Value>,
    #[schema(value_type = Option<Vec<Object>>)]
    functions: Option<Value>,
    #[schema(value_type = Option<String>)]
    function_call: Option<Value>,
    #[schema(value_type = Option<String>)]
    verbosity: Option<Value>,
    #[schema(value_type = Option<Object>)]
    web_search_options: Option<Value>,
}

const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];
/// How many alternatives a token may be told with.
pub(super) const ALTERNATIVES: usize = 20;

impl ChatRequest {
    /// The conversation for the template.
    pub(in crate::serve) fn messages(&self) -> Result<Vec<Message>, ApiError> {
        if self.messages.is_empty() {
            return Err(ApiError::field("messages", "`messages` is empty"));
        }
        self.messages.iter().enumerate().map(|(at, message)| checked(at, message)).collect()
    }

    /// What the template is given beside the conversation.
    pub(in crate::serve) fn extra(&self) -> Result<Extra, ApiError> {
        let tools_wanted = match self.tool_choice.as_ref().map(|choice| (choice, choice.as_str())) {
            None | Some((_, Some("auto")) | (Value::Null, _)) => true,
            Some((_, Some("none"))) => false,
            Some(_) => {
                let message = "`tool_choice` can be `auto` or `none`: a call cannot be forced";
                return Err(ApiError::field("tool_choice", message));
            }
        };
        let mut variables = self.chat_template_kwargs.clone().unwrap_or_default();
        for name in ["messages", "tools", "documents"] {
            if variables.contains_key(name) {
                let param = format!("chat_template_kwargs.{name}");
                return Err(ApiError::field(
                    &param,
                    format!("`{param}` would replace what the template reads"),
                ));
            }
        }
        if let Some(effort) = &self.reasoning_effort {
            variables.entry("reasoning_effort").or_insert_with(|| effort.as_str().into());
        }
        let tools = self.tools.clone().filter(|tools| tools_wanted && !tools.is_empty());
        Ok(Extra { tools: tools.map(|tools| tools.into_iter().map(Value::Object).collect()), variables })
    }

    /// Whether log-probabilities are wanted, and with how many alternatives.
    pub(in crate::serve) fn logprobs(&self) -> Result<Option<usize>, ApiError> {
        match (self.logprobs, self.top_logprobs) {
            (Some(true), Some(count)) if count > ALTERNATIVES => {
                let message = format!("`top_logprobs` is {count}, not a number from 0 to {ALTERNATIVES}");
                Err(ApiError::field("top_logprobs", message))
            }
            (Some(true), count) => Ok(Some(count.unwrap_or(0))),
            (_, Some(_)) => Err(ApiError::field("top_logprobs", "`top_logprobs` needs `logprobs: true`")),
            _ => Ok(None),
        }
    }

    /// Refuses what is known but cannot be done.
    pub(in crate::serve) fn check(&self) -> Result<(), ApiError> {
        refuse_unless("modalities", self.modalities.as_ref(), &[json!(["text"])])?;
        refuse_unless("audio", self.audio.as_ref(), &[])?;
        refuse_unless("functions", self.functions.as_ref(), &[json!([])])?;
        refuse_unless("function_call", self.function_call.as_ref(), &[json!("none"), json!("auto")])?;
        refuse_unless("verbosity", self.verbosity.as_ref(), &[json!("medium")])?;
        refuse_unless("web_search_options", self.web_search_options.as_ref(), &[])
    }
}

/// A message that templates can take.
fn checked(at: usize, message: &Map<String, Value>) -> Result<Message, ApiError> {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    if !ROLES.contains(&role) {
        let param = format!("messages[{at}].role");
        let known = ROLES.join("`, `");
        return Err(ApiError::field(&param, format!("`{param}` must be one of `{known}`")));
    }
    let mut message = message.clone();
    if role == "developer" {
        message.insert("role".to_owned(), "system".into());
    }
    read_arguments(&mut message);
    let param = format!("messages[{at}].content");
    match message.get("content") {
        Some(Value::String(_)) => {}
        None | Some(Value::Null) if role == "assistant" => {
            message.insert("content".to_owned(), "".into());
        }
        Some(Value::Array(parts)) => {
            for (number, part) in parts.iter().enumerate() {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                if kind != "text" || !part.get("text").is_some_and(Value::is_string) {
                    let param = format!("{param}[{number}]");
                    let what = match kind {
                        "image_url" | "input_image" | "image" => "an image: the model runs on text alone",
                        "input_audio" | "audio" => "sound: the model runs on text alone",
                        _ => "not a part of type `text`",
                    };
                    return Err(ApiError::field(&param, format!("`{param}` is {what}")));
                }
            }
        }
        _ => {
            let message = format!("`{param}` must be a text or a list of parts of type `text`");
            return Err(ApiError::field(&param, message));
        }
    }
    Ok(message)
}

/// Templates write a call's arguments as JSON, and clients send them as text that is JSON already.
fn read_arguments(message: &mut Message) {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        let Some(arguments) = call.pointer_mut("/function/arguments") else { continue };
        if let Some(object) = arguments.as_str().and_then(|text| serde_json::from_str(text).ok()) {
            *arguments = Value::Object(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::message;

    fn request(value: Value) -> Result<ChatRequest, ApiError> {
        let Value::Object(object) = value else { panic!("not an object") };
        super::super::strict(object)
    }

    #[track_caller]
    fn check_refused<T: std::fmt::Debug>(result: Result<T, ApiError>, param: &str) {
        assert_eq!(result.unwrap_err().body()["error"]["param"], param);
    }

    fn with(field: &str, value: Value) -> ChatRequest {
        let mut object = json!({"messages": [{"role": "user", "content": "Hi"}]});
        object[field] = value;
        request(object).unwrap()
    }

    #[test]
    fn messages_are_checked_and_the_developer_is_the_system() {
        let said =
            |content: Value| with("messages", json!([{"role": "user", "content": content}])).messages();
        assert_eq!(said(json!("Hi")).unwrap(), [message("user", "Hi")]);
        assert!(said(json!([{"type": "text", "text": "Hi"}])).is_ok());
        check_refused(said(json!(null)), "messages[0].content");
        check_refused(said(json!([{"type": "image_url", "image_url": {}}])), "messages[0].content[0]");
        check_refused(with("messages", json!([])).messages(), "messages");
        check_refused(
            with("messages", json!([{"role": "king", "content": ""}])).messages(),
            "messages[0].role",
        );
        let two = with("messages", json!([{"role": "developer", "content": "a"}, {"role": "assistant"}]));
        assert_eq!(
            two.messages().unwrap(),
            [message("system", "a"), {
                let mut silent = message("assistant", "");
                silent.sort_keys();
                silent.entry("content").or_insert_with(|| "".into());
                silent
            }]
        );
    }

    #[test]
    fn the_template_gets_arguments_as_json() {
        let arguments = |text: &str| {
            let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": text}});
            let request = with("messages", json!([{"role": "assistant", "tool_calls": [call]}]));
            request.messages().unwrap()[0]["tool_calls"][0]["function"]["arguments"].clone()
        };
        assert_eq!(arguments("{\"city\": \"Oslo\"}"), json!({"city": "Oslo"}));
        assert_eq!(arguments("not JSON"), "not JSON");
    }

    #[test]
    fn the_template_gets_tools_and_variables() {
        let tools = json!([{"type": "function", "function": {"name": "f"}}]);
        assert_eq!(with("tools", tools.clone()).extra().unwrap().tools, Some(tools.clone()));
        let mut request = with("tools", tools);
        request.tool_choice = Some(json!("none"));
        assert_eq!(request.extra().unwrap().tools, None);
        request.tool_choice = Some(json!("required"));
        check_refused(request.extra(), "tool_choice");
        let kwargs = with("chat_template_kwargs", json!({"enable_thinking": false})).extra().unwrap();
        assert_eq!(kwargs.variables["enable_thinking"], false);
        check_refused(
            with("chat_template_kwargs", json!({"messages": []})).extra(),
            "chat_template_kwargs.messages",
        );
    }

    #[test]
    fn logprobs_have_to_be_asked_for() {
        assert_eq!(with("logprobs", json!(true)).logprobs(), Ok(Some(0)));
        check_refused(with("top_logprobs", json!(2)).logprobs(), "top_logprobs");
        let mut request = with("logprobs", json!(true));
        request.top_logprobs = Some(21);
        check_refused(request.logprobs(), "top_logprobs");
    }

    #[test]
    fn what_cannot_be_done_is_named_where_it_matters() {
        check_refused(with("audio", json!({"voice": "x"})).check(), "audio");
        check_refused(with("modalities", json!(["text", "audio"])).check(), "modalities");
        assert_eq!(with("modalities", json!(["text"])).check(), Ok(()));
        assert_eq!(with("verbosity", json!("medium")).check(), Ok(()));
        check_refused(request(json!({"messages": [], "mesages": 1})), "mesages");
    }
}
