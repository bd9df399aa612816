//! Answers that call tools, whole and as a stream.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::answer::Part;
use super::*;
use crate::generate::FinishReason;
use crate::serve::engine::{Engine, Event, Said};
use crate::serve::prepare::{Kind, Tokens};
use crate::serve::{Identity, Keys, Settings, Surgery, Texts};

fn app() -> Arc<App> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/base");
    let settings = Settings {
        alias: None,
        keys: Keys::of(""),
        origins: Vec::new(),
        body_limit: 1000,
        max_batch: 1,
        max_queue: 1,
        max_tokens: None,
        prompt_cache: 0,
        request_timeout: Duration::from_secs(1),
        shutdown_timeout: Duration::from_secs(1),
    };
    let texts = Texts::open(&dir, &Map::new(), None, None).unwrap();
    Arc::new(App::new(settings, texts, Surgery::default(), Engine::new(1).0))
}

fn answer(app: &Arc<App>, calls: bool) -> Answer {
    let identity = Identity {
        id: "m".to_owned(),
        surgery: Surgery::default(),
        fingerprint: "f".to_owned(),
        meta: Value::Null,
    };
    let prepared = Prepared {
        model: 0,
        kind: Kind::Chat { calls },
        stream: false,
        usage: false,
        logprobs: None,
        prompts: vec![Tokens { ids: vec![1], echo: None }],
        n: 1,
        drafts: Vec::new(),
    };
    Answer::new(app, &identity, &prepared, Instant::now())
}

fn said(text: &str, finish: Option<FinishReason>) -> Said {
    Said { choice: 0, token: Some(5), silent: false, text: text.to_owned(), likely: None, finish }
}

const PIECES: [&str; 4] =
    ["I look.\n<tool", "_call>{\"name\": \"look\", ", "\"arguments\": {\"at\": 1}}</tool", "_call>"];

/// The one choice of the whole answer.
fn whole(calls: bool, last: FinishReason) -> Value {
    let (sender, events) = unbounded_channel();
    for (number, piece) in PIECES.iter().enumerate() {
        let finish = (number + 1 == PIECES.len()).then_some(last);
        sender.send(Event::Said(said(piece, finish))).unwrap();
    }
    drop(sender);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut object = runtime.block_on(answer(&app(), calls).whole(events)).unwrap();
    object["choices"][0].take()
}

#[test]
fn a_whole_answer_has_its_calls_beside_its_text() {
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
fn without_tools_a_call_is_text() {
    let choice = whole(false, FinishReason::Stop);
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["message"]["content"], PIECES.concat());
    assert!(choice["message"].get("tool_calls").is_none());
}

#[test]
fn a_stream_tells_a_call_in_one_piece() {
    let app = app();
    let mut answer = answer(&app, true);
    let mut choices = Vec::new();
    for (number, piece) in PIECES.iter().enumerate() {
        let finish = (number + 1 == PIECES.len()).then_some(FinishReason::Stop);
        if let Part::Chunk(mut chunk) = answer.said(said(piece, finish)) {
            choices.push(chunk["choices"][0].take());
        }
    }
    let [text, call] = choices.as_slice() else { panic!("{choices:?}") };
    assert_eq!(text["delta"], json!({"content": "I look."}));
    assert_eq!(text["finish_reason"], Value::Null);
    assert_eq!(call["finish_reason"], "tool_calls");
    assert_eq!(call["delta"]["tool_calls"][0]["index"], 0);
    assert_eq!(call["delta"]["tool_calls"][0]["function"]["name"], "look");
    assert!(call["delta"].get("content").is_none());
}
