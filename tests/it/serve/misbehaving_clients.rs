//! Misbehaving clients beside a well-behaved one: nothing hangs, and every answer is correct. `benches/unruly.py` does
//! the same with a thousand clients, and checks memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::server::{GUARD, Server, greedy};

const KEY: &str = "the right key";

fn headers(key: &str) -> [(String, String); 2] {
    [
        ("content-type".to_owned(), "application/json".to_owned()),
        ("authorization".to_owned(), format!("Bearer {key}")),
    ]
}

fn ask(server: &Server, key: &str, body: &str) -> super::server::Reply {
    let headers = headers(key);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    server.ask("POST", "/v1/completions", &headers, Some(body))
}

/// A connection that has sent the first `part` bytes of a request.
fn sent(server: &Server, body: &Value, part: usize) -> TcpStream {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    let body = body.to_string();
    let request = format!(
        "POST /v1/completions HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(&request.as_bytes()[..request.len().min(part)]).unwrap();
    stream
}

/// One client, whose number determines how it behaves.
fn behave(server: &Server, number: usize, requests: &[(Value, Value)]) {
    let (request, wanted) = &requests[number % requests.len()];
    let mut streamed = request.clone();
    streamed["stream"] = true.into();
    match number % 6 {
        0 => assert_eq!(ask(server, KEY, &request.to_string()).ok()["choices"], *wanted),
        1 => drop(ask(server, "a wrong key", &request.to_string()).error(401)),
        2 => {
            let bodies =
                ["{", "[]", r#"{"prompt": 1}"#, r#"{"prompt": "a", "n": 1000}"#, r#"{"promt": "a"}"#];
            ask(server, KEY, bodies[number / 6 % bodies.len()]).error(400);
        }
        // Disconnects in the headers, in the body, before the response, or within it.
        3 => drop(sent(server, &streamed, 40 * (number % 7))),
        4 => {
            let mut stream = sent(server, &streamed, usize::MAX);
            stream.read_exact(&mut vec![0; 1 + 150 * (number % 5)]).unwrap();
        }
        _ => {
            let mut stream = sent(server, &streamed, usize::MAX);
            let (mut received, mut piece) = (Vec::new(), [0; 100]);
            loop {
                let count = stream.read(&mut piece).unwrap();
                if count == 0 {
                    break;
                }
                received.extend_from_slice(&piece[..count]);
                std::thread::sleep(Duration::from_millis(1));
            }
            let received = String::from_utf8_lossy(&received);
            let events = received.lines().filter_map(|line| line.strip_prefix("data: {"));
            let text: String = events
                .map(|event| serde_json::from_str::<Value>(&format!("{{{event}")).expect("an event"))
                .filter_map(|event| Some(event["choices"][0]["text"].as_str()?.to_owned()))
                .collect();
            assert_eq!(text, wanted[0]["text"].as_str().unwrap());
        }
    }
}

#[test]
fn misbehaving_clients_do_not_affect_others() {
    let server = Server::start(&["--max-batch", "4", "--max-queue", "60", "--api-key", KEY]);
    let prompts = ["One morning Anna", "The fox", "日本", "In the forest there was a", "A"];
    let requests: Vec<(Value, Value)> = prompts
        .iter()
        .enumerate()
        .map(|(at, prompt)| greedy(prompt, 10 + 5 * at))
        .map(|request| {
            let answer = ask(&server, KEY, &request.to_string()).ok()["choices"].take();
            (request, answer)
        })
        .collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let steady = scope.spawn(|| {
            let mut answered = 0;
            while !over.load(Ordering::Relaxed) {
                behave(&server, 0, &requests);
                answered += 1;
            }
            answered
        });
        let misbehaving = |first: usize| {
            let (server, requests) = (&server, &requests);
            scope.spawn(move || (0..20).for_each(|round| behave(server, first + 7 * round, requests)))
        };
        let clients: Vec<_> = (0..6).map(misbehaving).collect();
        let ended: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        for client in ended {
            client.unwrap();
        }
        assert!(steady.join().unwrap() > 0);
    });
    let headers = headers(KEY);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let begin = Instant::now();
    loop {
        let metrics = server.ask("GET", "/metrics", &headers, None).body;
        if metrics.contains("\nmlxcel_active 0\n") && metrics.contains("\nmlxcel_queue_depth 0\n") {
            break;
        }
        assert!(begin.elapsed() < GUARD, "a slot is still in use: {metrics}");
        std::thread::sleep(Duration::from_millis(10));
    }
    for (request, wanted) in &requests {
        assert_eq!(ask(&server, KEY, &request.to_string()).ok()["choices"], *wanted);
    }
}
