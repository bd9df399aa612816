//! Shutdown, timeouts, failures, and the Unix socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::server::{BASE, GUARD, Server, endless, greedy, root};
use crate::closed_stdout::closed_pipe;
use crate::program::{command, ended};

fn last_error(events: impl Iterator<Item = String>) -> Value {
    let last = events.last().expect("an event");
    serde_json::from_str::<Value>(&last).expect("JSON")["error"].take()
}

#[test]
fn shutdown_waits_for_running_answers() {
    let mut server = Server::start(&[]);
    let stream = server.stream("/v1/completions", &greedy("One morning Anna", 100));
    server.signal("TERM");
    assert!(stream.chunks().len() > 5);
    assert_eq!(server.wait_for_exit(), Some(0));
}

#[test]
fn shutdown_aborts_answers_after_the_timeout() {
    let (_dir, model) = endless();
    let mut server = Server::start_model(model.to_str().unwrap(), &["--shutdown-timeout", "1"]);
    let mut stream = server.stream("/v1/completions", &greedy("a", 900_000));
    assert!(stream.next().is_some());
    server.signal("INT");
    assert_eq!(last_error(stream)["code"], "shutting_down");
    assert_eq!(server.wait_for_exit(), Some(0));
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let (_dir, model) = endless();
    let mut server = Server::start_model(model.to_str().unwrap(), &["--shutdown-timeout", "600"]);
    let mut stream = server.stream("/v1/completions", &greedy("a", 900_000));
    assert!(stream.next().is_some());
    server.signal("INT");
    // The first signal has arrived when the port is closed.
    let begin = Instant::now();
    while TcpStream::connect(server.url.strip_prefix("http://").unwrap()).is_ok() {
        assert!(begin.elapsed() < GUARD, "the port stays open");
        std::thread::sleep(Duration::from_millis(10));
    }
    server.signal("INT");
    // Without the second signal it would be 0, after `--shutdown-timeout`.
    assert_eq!(server.wait_for_exit(), Some(130));
}

#[test]
fn a_request_that_exceeds_the_timeout_fails() {
    let (_dir, model) = endless();
    let server =
        Server::start_model(model.to_str().unwrap(), &["--request-timeout", "1", "--max-batch", "1"]);
    let stream = server.stream("/v1/completions", &greedy("a", 900_000));
    assert_eq!(last_error(stream)["code"], "request_timeout");
    assert_eq!(server.post("/v1/completions", &greedy("a", 900_000)).error(504)["type"], "timeout_error");
    assert_eq!(server.post("/v1/completions", &greedy("a", 2)).status, 200);
}

#[test]
fn a_model_that_cannot_be_loaded_stops_the_server() {
    let (_dir, model) = endless();
    let file = model.join("model.safetensors");
    let config = std::fs::read_to_string(model.join("config.json")).unwrap();
    assert!(file.exists());
    std::fs::write(
        model.join("config.json"),
        config
            .replace("\"hidden_size\": 64", "\"hidden_size\":32")
            .replace("\"hidden_size\":64", "\"hidden_size\":32"),
    )
    .unwrap();
    let run = ended(command(root()).args(["serve", "--port", "0", "--model"]).arg(&model).output().unwrap());
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("model::"), "{}", run.stderr);
}

#[test]
fn an_unwritable_log_does_not_stop_the_server() {
    let full = std::fs::File::create("/dev/full").map_or_else(|_| closed_pipe(), Stdio::from);
    for log in [full, closed_pipe()] {
        let mut server = Server::spawn_with_log(BASE, &[], &[], log);
        server.wait_until_ready();
        assert_eq!(server.post("/v1/completions", &greedy("a", 2)).status, 200);
        server.signal("TERM");
        assert_eq!(server.wait_for_exit(), Some(0));
    }
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mlxcel.sock");
    let mut program = command(root());
    program.args(["serve", "--model", BASE, "--quiet", "--unix-socket"]).arg(&path);
    let mut child = program.stdout(Stdio::null()).spawn().unwrap();
    let ask = || {
        let mut stream = UnixStream::connect(&path).ok()?;
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(answer)
    };
    let begin = Instant::now();
    let answer = loop {
        if let Some(answer) = ask() {
            break answer;
        }
        assert!(begin.elapsed() < GUARD, "the socket does not respond");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(answer.contains("\"status\":\"ok\""), "{answer}");
    let sent = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
}
