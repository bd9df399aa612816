//! Responses with tool calls, whole and streamed.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::sync::mpsc::unbounded_channel;

use super::builder::ResponseBuilder;
use crate::generate::FinishReason;
use crate::serve::app_state::AppState;
use crate::serve::endpoint::Endpoint;
use crate::serve::engine::{Engine, Event, TokenDelta};
use crate::serve::lower_request::{LoweredPrompt, LoweredRequest};
use crate::serve::{ApiKeys, ModelIdentity, Settings, SurgeryInfo, TextPipeline};

fn app() -> Arc<AppState> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/base");
    let settings = Settings {
        alias: None,
        api_keys: ApiKeys::parse(""),
        cors_origins: Vec::new(),
        max_body_bytes: 1000,
        max_batch: 1,
        max_queue: 1,
        max_tokens: None,
        prompt_cache_bytes: 0,
        request_timeout: Duration::from_secs(1),
        shutdown_timeout: Duration::from_secs(1),
    };
    let text_pipeline = TextPipeline::open(&dir, &Map::new(), None, None).unwrap();
    Arc::new(AppState::new(settings, text_pipeline, SurgeryInfo::default(), Engine::new(1).0))
}

fn builder(app: &Arc<AppState>, parse_tool_calls: bool) -> ResponseBuilder {
    let identity = ModelIdentity {
        id: "m".to_owned(),
        surgery: SurgeryInfo::default(),
        fingerprint: "f".to_owned(),
        meta: Value::Null,
    };
    let request = LoweredRequest {
        endpoint: Endpoint::Chat,
        model: 0,
        stream: false,
        include_usage: false,
        logprobs: None,
        parse_tool_calls,
        n: 1,
        prompts: vec![LoweredPrompt { ids: vec![1], echo: None, choices: Vec::new() }],
    };
    ResponseBuilder::new(app, &identity, &request, Instant::now())
}

fn token(text: &str, finish: Option<FinishReason>) -> Event {
    Event::Token(TokenDelta { choice: 0, token: Some(5), text: text.to_owned(), logprob: None, finish })
}

const PIECES: [&str; 4] =
    ["I look.\n<tool", "_call>{\"name\": \"look\", ", "\"arguments\": {\"at\": 1}}</tool", "_call>"];

/// The choice of the whole response.
fn whole(parse_tool_calls: bool, last: FinishReason) -> Value {
    let (sender, events) = unbounded_channel();
    for (number, piece) in PIECES.iter().enumerate() {
        let finish = (number + 1 == PIECES.len()).then_some(last);
        sender.send(token(piece, finish)).unwrap();
    }
    drop(sender);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut object = runtime.block_on(builder(&app(), parse_tool_calls).collect(events)).unwrap();
    object["choices"][0].take()
}

#[test]
fn tool_calls_are_separated_from_the_text() {
    let choice = whole(true, FinishReason::Stop);
    assert_eq!(choice["finish_reason"], "tool_calls");
    let message = &choice["message"];
    assert_eq!(message["content"], "I look.");
    let [call] = message["tool_calls"].as_array().unwrap().as_slice() else { panic!("{message}") };
    assert!(call["id"].as_str().unwrap().starts_with("call_"));
    assert_eq!(call["type"], "function");
    assert_eq!(call["function"], json!({"name": "look", "arguments": "{\"at\":1}"}));
    assert_eq!(whole(true, FinishReason::Length)["finish_reason"], "length");
}

#[test]
fn without_tools_a_tagged_call_remains_text() {
    let choice = whole(false, FinishReason::Stop);
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["message"]["content"], PIECES.concat());
    assert!(choice["message"].get("tool_calls").is_none());
}

#[test]
fn a_stream_sends_each_call_in_one_chunk() {
    let app = app();
    let mut builder = builder(&app, true);
    let mut choices = Vec::new();
    for (number, piece) in PIECES.iter().enumerate() {
        let finish = (number + 1 == PIECES.len()).then_some(FinishReason::Stop);
        let chunks = builder.apply(token(piece, finish)).unwrap();
        choices.extend(chunks.into_iter().map(|mut chunk| chunk["choices"][0].take()));
    }
    let [text, call] = choices.as_slice() else { panic!("{choices:?}") };
    assert_eq!(text["delta"], json!({"content": "I look."}));
    assert_eq!(text["finish_reason"], Value::Null);
    assert_eq!(call["finish_reason"], "tool_calls");
    assert_eq!(call["delta"]["tool_calls"][0]["index"], 0);
    assert_eq!(call["delta"]["tool_calls"][0]["function"]["name"], "look");
    assert!(call["delta"].get("content").is_none());
}
