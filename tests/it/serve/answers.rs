//! Responses: texts, streams, log-probabilities, schemas.

use serde_json::{Value, json};

use super::server::{BASE, Server, greedy, joined_texts, root};
use crate::program::{command, ended};

/// The text that `mlxcel generate` prints.
fn generated(more: &[&str]) -> String {
    let common = ["generate", "--model", BASE, "--quiet", "--max-tokens", "40"];
    let run = ended(command(root()).args(common).args(more).output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout.strip_suffix('\n').unwrap().to_owned()
}

#[test]
fn the_server_and_generate_give_the_same_text() {
    let server = Server::start(&[]);
    let raw = generated(&["--prompt", "One morning Anna", "--raw"]);
    assert_eq!(server.text(&greedy("One morning Anna", 40)), raw);
    let sampled = ["--prompt", "One morning Anna", "--raw", "--temp", "0.8", "--top-p", "0.9", "--seed", "7"];
    let request =
        json!({"prompt": "One morning Anna", "max_tokens": 40, "temperature": 0.8, "top_p": 0.9, "seed": 7});
    assert_eq!(server.text(&request), generated(&sampled));
    let chat = json!({"messages": [{"role": "user", "content": "One morning Anna"}], "max_tokens": 40});
    let reply = server.post("/v1/chat/completions", &chat).ok();
    let message = &reply["choices"][0]["message"];
    assert_eq!(message["content"], generated(&["--prompt", "One morning Anna"]));
    assert_eq!((&message["role"], &reply["object"]), (&json!("assistant"), &json!("chat.completion")));
    let usage = &reply["usage"];
    let sum = usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], sum);
}

#[test]
fn a_stream_has_the_shape_of_the_openai_api() {
    let server = Server::start(&[]);
    let request = json!({"messages": [{"role": "user", "content": "Anna"}], "max_tokens": 6,
        "stream_options": {"include_usage": true}});
    let chunks = server.stream("/v1/chat/completions", &request).chunks();
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    let (last, rest) = chunks.split_last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]["completion_tokens"]), (&json!([]), &json!(6)));
    let (end, before) = rest.split_last().unwrap();
    assert_eq!(end["choices"][0]["finish_reason"], "length");
    assert!(before.iter().all(|chunk| chunk["choices"][0]["finish_reason"].is_null()));
    assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"]
        && chunk["object"] == "chat.completion.chunk"
        && chunk["system_fingerprint"] == chunks[0]["system_fingerprint"]));
}

/// At a high temperature the model generates arbitrary bytes, partial characters included.
#[test]
fn the_chunks_of_a_stream_add_up_to_the_text() {
    let server = Server::start(&[]);
    let prompts = ["One morning Anna", "日本の朝、", "🦊🌲 and 👩‍👩‍👧", "é\u{301}", "x"];
    let stops = [json!(null), json!("the "), json!(["a", "zz"]), json!(["\n", "日"]), json!(["he", "in t"])];
    let temperatures = [0.0, 0.7, 1.5, 3.0, 30.0];
    for seed in 0..25 {
        let temperature = temperatures[(seed + seed / 5) % 5];
        let request = json!({"prompt": prompts[seed % 5], "stop": stops[seed / 5], "seed": seed, "max_tokens": 40,
            "temperature": temperature, "n": 1 + seed % 2});
        let whole = server.post("/v1/completions", &request).ok();
        let texts: Vec<&str> =
            whole["choices"].as_array().unwrap().iter().map(|c| c["text"].as_str().unwrap()).collect();
        let chunks = server.stream("/v1/completions", &request).chunks();
        assert_eq!(joined_texts(&chunks, texts.len()), texts, "{request}");
        for stop in stops[seed / 5].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(texts.iter().all(|text| !text.contains(stop)), "{request}: {texts:?}");
        }
    }
}

#[test]
fn choices_use_consecutive_seeds() {
    let server = Server::start(&[]);
    let request = |seed: u64, n: usize| json!({"prompt": ["One morning", "The fox"], "temperature": 1, "seed": seed, "n": n, "max_tokens": 20});
    let three = server.post("/v1/completions", &request(5, 3)).ok();
    let text = |reply: &Value, at: usize| reply["choices"][at]["text"].as_str().unwrap().to_owned();
    for at in 0..3 {
        let one = server.post("/v1/completions", &request(5 + at as u64, 1)).ok();
        assert_eq!((text(&three, at), text(&three, 3 + at)), (text(&one, 0), text(&one, 1)));
    }
    assert_ne!(text(&three, 0), text(&three, 1));
    let indices: Vec<u64> =
        three["choices"].as_array().unwrap().iter().map(|choice| choice["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn echo_with_logprobs_scores_a_text_as_score_does() {
    let server = Server::start(&[]);
    let text = "One morning Anna found a lamp in the forest.";
    let request = json!({"prompt": text, "echo": true, "logprobs": 2, "max_tokens": 0});
    let choice = server.post("/v1/completions", &request).ok()["choices"][0].take();
    assert_eq!((&choice["text"], &choice["finish_reason"]), (&json!(text), &json!("length")));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let score = ["score", "--model", BASE, "--json", "--text", file.path().to_str().unwrap()];
    let score = ended(command(root()).args(score).output().unwrap()).json();
    let logprobs = &choice["logprobs"];
    assert_eq!(logprobs["token_logprobs"], score["logprobs"]);
    let tokens: Vec<&str> =
        logprobs["tokens"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
    assert_eq!(tokens.concat(), text);
    let offsets: Vec<usize> =
        tokens.iter().scan(0, |at, token| Some(std::mem::replace(at, *at + token.len()))).collect();
    assert_eq!(logprobs["text_offset"], json!(offsets));
    assert!(
        logprobs["top_logprobs"][0].is_null() && logprobs["top_logprobs"][1].as_object().unwrap().len() == 2
    );
}

#[test]
fn chats_have_log_probabilities() {
    let server = Server::start(&[]);
    let request = json!({"messages": [{"role": "user", "content": "One morning Anna"}], "max_tokens": 5,
        "temperature": 0, "logprobs": true, "top_logprobs": 3});
    let choice = server.post("/v1/chat/completions", &request).ok()["choices"][0].take();
    let content = choice["logprobs"]["content"].as_array().unwrap();
    assert_eq!(content.len(), 5);
    let text: String = content.iter().map(|entry| entry["token"].as_str().unwrap()).collect();
    assert_eq!(choice["message"]["content"], text);
    for entry in content {
        let top = entry["top_logprobs"].as_array().unwrap();
        assert_eq!((top.len(), &top[0]["token"]), (3, &entry["token"]));
        assert_eq!(top[0]["logprob"], entry["logprob"]);
    }
    let chunks = server.stream("/v1/chat/completions", &request).chunks();
    let streamed: Vec<&Value> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["logprobs"]["content"].as_array())
        .flatten()
        .collect();
    assert_eq!(streamed, content.iter().collect::<Vec<_>>());
}

#[test]
fn biases_and_penalties_change_the_answer() {
    let server = Server::start(&[]);
    let plain = greedy("One morning Anna", 30);
    let token = &server
        .post(
            "/v1/completions",
            &json!({"prompt": "One morning Anna", "max_tokens": 1,
        "temperature": 0, "logprobs": 0}),
        )
        .ok()["choices"][0]["logprobs"]["tokens"][0];
    let id = server.post("/tokenize", &json!({"prompt": token, "add_special_tokens": false})).ok()["tokens"]
        [0]
    .to_string();
    let mut banned = plain.clone();
    banned["logit_bias"] = json!({(id.clone()): -100});
    let other = server.text(&banned);
    assert!(!other.contains(token.as_str().unwrap()) && other != server.text(&plain), "{other}");
    let mut forced = plain.clone();
    forced["logit_bias"] = json!({(id): 100});
    assert_eq!(server.text(&forced), token.as_str().unwrap().repeat(30));
    forced["logit_bias"].as_object_mut().unwrap().values_mut().for_each(|bias| *bias = 20.into());
    assert_eq!(server.text(&forced), token.as_str().unwrap().repeat(30));
    forced["frequency_penalty"] = 2.into();
    forced["presence_penalty"] = 2.into();
    let penalized = server.post("/v1/completions", &forced).ok();
    assert_ne!(penalized["choices"][0]["text"], json!(token.as_str().unwrap().repeat(30)));
}

#[test]
fn answers_match_their_schema() {
    let server = Server::start(&[]);
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["brave", "mood"], "properties":
        {"brave": {"type": "boolean"}, "mood": {"enum": ["happy", "sleepy", "日本"]}}});
    for seed in 0..4 {
        let request = json!({"messages": [{"role": "user", "content": "Anna"}], "max_tokens": 150, "temperature": 1,
            "seed": seed, "response_format": {"type": "json_schema", "json_schema": {"name": "fox", "schema": schema}}});
        let reply = server.post("/v1/chat/completions", &request).ok();
        let choice = &reply["choices"][0];
        let text = choice["message"]["content"].as_str().unwrap();
        assert_eq!(choice["finish_reason"], "stop", "{text}");
        let object: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(object["brave"].is_boolean(), "{text}");
        assert!(["happy", "sleepy", "日本"].contains(&object["mood"].as_str().unwrap()), "{text}");
    }
}

#[test]
fn texts_are_tokenized_and_detokenized() {
    let server = Server::start(&[]);
    let text = "One morning 日本 🦊";
    let tokens = server.post("/tokenize", &json!({"prompt": text})).ok();
    assert_eq!(tokens["count"], tokens["tokens"].as_array().unwrap().len());
    assert_eq!(tokens["max_model_len"], 256);
    assert_eq!(
        server.post("/detokenize", &json!({"tokens": tokens["tokens"]})).ok(),
        json!({"prompt": text})
    );
    let chat = server.post("/tokenize", &json!({"messages": [{"role": "user", "content": text}]})).ok();
    assert_eq!(chat["tokens"], tokens["tokens"]);
    // Token ids and text are the same prompt.
    let greedy = |prompt: &Value| server.text(&json!({"prompt": prompt, "temperature": 0, "max_tokens": 9}));
    assert_eq!(greedy(&json!([tokens["tokens"]])), greedy(&json!(text)));
}

#[test]
fn the_page_uses_no_external_resources() {
    let server = Server::start(&[]);
    let page = server.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert!(!page.body.contains("http://") && !page.body.contains("https://"));
}
