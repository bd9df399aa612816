//! Concurrent requests: they do not affect each other, they are queued fairly, and they share cached prompts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{GUARD, Server, endless, greedy};

fn requests() -> Vec<Value> {
    let prompts =
        ["One morning Anna", "The fox", "He", "In the forest there was a", "日本", "She felt", "A", "It was"];
    let request = |(at, prompt): (usize, &&str)| {
        let temperature = [0.0, 1.0, 0.7][at % 3];
        json!({"prompt": prompt, "max_tokens": 30 + at, "temperature": temperature, "seed": at, "logprobs": 1})
    };
    prompts.iter().enumerate().map(request).collect()
}

#[test]
fn an_answer_is_the_same_alone_and_among_others() {
    let server = Server::start(&["--max-batch", "8"]);
    let answer = |request: &Value| server.post("/v1/completions", request).ok()["choices"].take();
    let requests = requests();
    let alone: Vec<Value> = requests.iter().map(answer).collect();
    for round in 0..3 {
        let together: Vec<Value> = std::thread::scope(|scope| {
            let ask = |(at, request)| {
                let answer = &answer;
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(at as u64 * 3 * round));
                    answer(request)
                })
            };
            let threads: Vec<_> = requests.iter().enumerate().map(ask).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        // Log-probabilities are compared bit for bit.
        assert_eq!(together, alone);
    }
}

#[test]
fn a_cached_prompt_gives_the_same_answer() {
    let server = Server::start(&[]);
    let long = "Once upon a time there was a quiet fox in the forest. ".repeat(6);
    let ask = |prompt: &str| {
        let request = json!({"prompt": prompt, "max_tokens": 20, "temperature": 1, "seed": 4, "logprobs": 1});
        let reply = server.post("/v1/completions", &request).ok();
        let cached = reply["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
        assert!(reply["usage"]["prompt_tokens"].as_u64().unwrap() > 128);
        (cached, reply["choices"].clone())
    };
    let (cached, first) = ask(&long);
    assert_eq!(cached, 0);
    let (cached, second) = ask(&long);
    // Log-probabilities are compared bit for bit.
    assert_eq!((cached, second), (128, first));
    assert_eq!(ask(&format!("{long}He ")).0, 128);
    assert_eq!(ask(&format!("X{long}")).0, 0);
    assert!(server.metric("mlxcel_cached_tokens_total") > 255.0);
}

#[test]
fn a_full_queue_rejects_requests_with_retry_after() {
    let (_dir, model) = endless();
    let server = Server::start_model(model.to_str().unwrap(), &["--max-batch", "1", "--max-queue", "1"]);
    let running = server.stream("/v1/completions", &greedy("a", 900_000));
    let waiting = server.stream("/v1/completions", &greedy("b", 900_000));
    let refused = server.post("/v1/completions", &greedy("c", 1));
    assert_eq!(refused.error(429)["code"], "queue_full");
    assert_eq!(refused.header("retry-after"), Some("1"));
    drop((running, waiting));
}

#[test]
fn a_disconnected_client_frees_its_slot() {
    let (_dir, model) = endless();
    let server = Server::start_model(model.to_str().unwrap(), &["--max-batch", "1", "--max-queue", "2"]);
    for _ in 0..5 {
        let mut stream = server.stream("/v1/completions", &greedy("a", 900_000));
        assert!(stream.next().is_some());
        drop(stream);
        let reply = server.post("/v1/completions", &greedy("b", 3)).ok();
        assert_eq!(reply["usage"]["completion_tokens"], 3);
    }
    let begin = Instant::now();
    while server.metric("mlxcel_active") + server.metric("mlxcel_queue_depth") > 0.0 {
        assert!(begin.elapsed() < GUARD, "a slot is still in use");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_long_request_does_not_stall_short_ones() {
    let (_dir, model) = endless();
    let server = Server::start_model(model.to_str().unwrap(), &[]);
    let mut long = server.stream("/v1/completions", &greedy("a", 900_000));
    assert!(long.next().is_some());
    let read = greedy(&"a fox in the forest ".repeat(3000), 900_000);
    let reading = server.stream("/v1/completions", &read);
    for _ in 0..3 {
        let reply = server.post("/v1/completions", &greedy("b", 3)).ok();
        assert_eq!(reply["usage"]["completion_tokens"], 3);
    }
    assert!(long.next().is_some());
    drop(reading);
}

#[test]
fn memory_does_not_grow() {
    let server = Server::start(&["--prompt-cache", "1"]);
    let round = || {
        for request in requests() {
            server.post("/v1/completions", &request).ok();
            drop(server.stream("/v1/completions", &request));
            server
                .ask("POST", "/v1/completions", &[("content-type", "application/json")], Some("{\"prompt\""))
                .error(400);
        }
    };
    for _ in 0..5 {
        round();
    }
    let before = server.resident_memory();
    for _ in 0..15 {
        round();
    }
    let after = server.resident_memory();
    // Allocators keep some pages; a leaked cache per request would far exceed 10 %.
    assert!(after < before + before / 10, "{before} kB before, {after} kB after");
}
