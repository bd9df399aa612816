//! [`ChatRequest`]: the fields of `/v1/chat/completions` beside the common ones.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::unsupported::{MAX_TOP_LOGPROBS, reject_unless_inert};
use crate::generate::{Message, TemplateInputs};
use crate::serve::error::ApiError;

/// Fields of a chat request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct ChatRequest {
    /// The conversation so far.
    #[schema(value_type = Vec<Object>, min_items = 1)]
    messages: Vec<Map<String, Value>>,
    /// Returns the log-probability of every token.
    logprobs: Option<bool>,
    /// Number of most likely tokens to return at each position.
    #[schema(maximum = 20)]
    top_logprobs: Option<usize>,
    /// Passed to the chat template.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Map<String, Value>>>,
    /// `auto` or `none`; with `none` the template gets no tools.
    #[schema(value_type = Option<String>)]
    tool_choice: Option<Value>,
    /// Additional variables of the chat template.
    #[schema(value_type = Option<Object>)]
    chat_template_kwargs: Option<Map<String, Value>>,
    /// Passed to the chat template.
    reasoning_effort: Option<String>,
    // No effect on the answer.
    #[expect(dead_code, reason = "accepted without effect")]
    parallel_tool_calls: Option<bool>,
    #[expect(dead_code, reason = "accepted without effect")]
    #[schema(value_type = Option<Object>)]
    prediction: Option<Map<String, Value>>,
    // Not supported.
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

impl ChatRequest {
    /// The conversation for the chat template.
    pub(in crate::serve) fn messages(&self) -> Result<Vec<Message>, ApiError> {
        if self.messages.is_empty() {
            return Err(ApiError::invalid_field("messages", "`messages` is empty"));
        }
        self.messages.iter().enumerate().map(|(index, message)| checked_message(index, message)).collect()
    }

    /// What the chat template gets beside the conversation.
    pub(in crate::serve) fn template_inputs(&self) -> Result<TemplateInputs, ApiError> {
        let with_tools = match self.tool_choice.as_ref().map(|choice| (choice, choice.as_str())) {
            None | Some((_, Some("auto")) | (Value::Null, _)) => true,
            Some((_, Some("none"))) => false,
            Some(_) => {
                let message = "`tool_choice` must be `auto` or `none`; forced calls are not supported";
                return Err(ApiError::invalid_field("tool_choice", message));
            }
        };
        let mut variables = self.chat_template_kwargs.clone().unwrap_or_default();
        for name in ["messages", "tools", "documents"] {
            if variables.contains_key(name) {
                let param = format!("chat_template_kwargs.{name}");
                return Err(ApiError::invalid_field(
                    &param,
                    format!("`{param}` overrides a variable that the request sets"),
                ));
            }
        }
        if let Some(effort) = &self.reasoning_effort {
            variables.entry("reasoning_effort").or_insert_with(|| effort.as_str().into());
        }
        let tools = self.tools.clone().filter(|tools| with_tools && !tools.is_empty());
        Ok(TemplateInputs {
            tools: tools.map(|tools| tools.into_iter().map(Value::Object).collect()),
            variables,
        })
    }

    /// The number of alternatives per token if log-probabilities are requested.
    pub(in crate::serve) fn logprobs(&self) -> Result<Option<usize>, ApiError> {
        match (self.logprobs, self.top_logprobs) {
            (Some(true), Some(count)) if count > MAX_TOP_LOGPROBS => {
                let message = format!("`top_logprobs` is {count}; it must be from 0 to {MAX_TOP_LOGPROBS}");
                Err(ApiError::invalid_field("top_logprobs", message))
            }
            (Some(true), count) => Ok(Some(count.unwrap_or(0))),
            (_, Some(_)) => {
                Err(ApiError::invalid_field("top_logprobs", "`top_logprobs` requires `logprobs: true`"))
            }
            _ => Ok(None),
        }
    }

    /// Rejects unsupported fields.
    pub(in crate::serve) fn check_unsupported(&self) -> Result<(), ApiError> {
        reject_unless_inert("modalities", self.modalities.as_ref(), &[json!(["text"])])?;
        reject_unless_inert("audio", self.audio.as_ref(), &[])?;
        reject_unless_inert("functions", self.functions.as_ref(), &[json!([])])?;
        reject_unless_inert("function_call", self.function_call.as_ref(), &[json!("none"), json!("auto")])?;
        reject_unless_inert("verbosity", self.verbosity.as_ref(), &[json!("medium")])?;
        reject_unless_inert("web_search_options", self.web_search_options.as_ref(), &[])
    }
}

/// Checks a message and normalizes it for templates.
fn checked_message(index: usize, message: &Map<String, Value>) -> Result<Message, ApiError> {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    if !ROLES.contains(&role) {
        let param = format!("messages[{index}].role");
        let known = ROLES.join("`, `");
        return Err(ApiError::invalid_field(&param, format!("`{param}` must be one of `{known}`")));
    }
    let mut message = message.clone();
    if role == "developer" {
        message.insert("role".to_owned(), "system".into());
    }
    parse_arguments(&mut message);
    let param = format!("messages[{index}].content");
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
                        "image_url" | "input_image" | "image" => "an image; only text is supported",
                        "input_audio" | "audio" => "audio; only text is supported",
                        _ => "not a content part of type `text`",
                    };
                    return Err(ApiError::invalid_field(&param, format!("`{param}` is {what}")));
                }
            }
        }
        _ => {
            let message = format!("`{param}` must be a string or a list of content parts of type `text`");
            return Err(ApiError::invalid_field(&param, message));
        }
    }
    Ok(message)
}

/// Parses the arguments of tool calls: clients send them as JSON text, but templates serialize them themselves.
fn parse_arguments(message: &mut Message) {
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
        super::super::parse_strict(object)
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
    fn messages_are_checked_and_developer_becomes_system() {
        let checked =
            |content: Value| with("messages", json!([{"role": "user", "content": content}])).messages();
        assert_eq!(checked(json!("Hi")).unwrap(), [message("user", "Hi")]);
        assert!(checked(json!([{"type": "text", "text": "Hi"}])).is_ok());
        check_refused(checked(json!(null)), "messages[0].content");
        check_refused(checked(json!([{"type": "image_url", "image_url": {}}])), "messages[0].content[0]");
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
    fn templates_get_arguments_as_json() {
        let arguments = |text: &str| {
            let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": text}});
            let request = with("messages", json!([{"role": "assistant", "tool_calls": [call]}]));
            request.messages().unwrap()[0]["tool_calls"][0]["function"]["arguments"].clone()
        };
        assert_eq!(arguments("{\"city\": \"Oslo\"}"), json!({"city": "Oslo"}));
        assert_eq!(arguments("not JSON"), "not JSON");
    }

    #[test]
    fn templates_get_tools_and_variables() {
        let tools = json!([{"type": "function", "function": {"name": "f"}}]);
        assert_eq!(with("tools", tools.clone()).template_inputs().unwrap().tools, Some(tools.clone()));
        let mut request = with("tools", tools);
        request.tool_choice = Some(json!("none"));
        assert_eq!(request.template_inputs().unwrap().tools, None);
        request.tool_choice = Some(json!("required"));
        check_refused(request.template_inputs(), "tool_choice");
        let kwargs =
            with("chat_template_kwargs", json!({"enable_thinking": false})).template_inputs().unwrap();
        assert_eq!(kwargs.variables["enable_thinking"], false);
        check_refused(
            with("chat_template_kwargs", json!({"messages": []})).template_inputs(),
            "chat_template_kwargs.messages",
        );
    }

    #[test]
    fn top_logprobs_require_logprobs() {
        assert_eq!(with("logprobs", json!(true)).logprobs(), Ok(Some(0)));
        check_refused(with("top_logprobs", json!(2)).logprobs(), "top_logprobs");
        let mut request = with("logprobs", json!(true));
        request.top_logprobs = Some(21);
        check_refused(request.logprobs(), "top_logprobs");
    }

    #[test]
    fn unsupported_fields_are_rejected_unless_inert() {
        check_refused(with("audio", json!({"voice": "x"})).check_unsupported(), "audio");
        check_refused(with("modalities", json!(["text", "audio"])).check_unsupported(), "modalities");
        assert_eq!(with("modalities", json!(["text"])).check_unsupported(), Ok(()));
        assert_eq!(with("verbosity", json!("medium")).check_unsupported(), Ok(()));
        check_refused(request(json!({"messages": [], "mesages": 1})), "mesages");
    }
}
