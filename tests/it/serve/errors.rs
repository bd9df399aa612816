//! Rejected requests.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::server::{Server, greedy};

#[test]
fn invalid_fields_are_rejected_by_name() {
    let server = Server::start(&[]);
    let chat = |change: Value| {
        let mut request = json!({"messages": [{"role": "user", "content": "Hi"}]});
        request.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        server.post("/v1/chat/completions", &request).error(400)["param"].clone()
    };
    assert_eq!(chat(json!({"temprature": 1})), "temprature");
    assert_eq!(chat(json!({"temperature": "hot"})), "temperature");
    assert_eq!(chat(json!({"messages": []})), "messages");
    assert_eq!(chat(json!({"audio": {"voice": "x"}})), "audio");
    assert_eq!(chat(json!({"max_tokens": 0})), "max_tokens");
    assert_eq!(chat(json!({"n": 9})), "n");
    assert_eq!(
        chat(json!({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}})),
        "response_format"
    );
    let completion = |request: Value| server.post("/v1/completions", &request).error(400)["param"].clone();
    assert_eq!(completion(json!({})), "prompt");
    assert_eq!(completion(json!({"prompt": [512]})), "prompt");
    assert_eq!(completion(json!({"prompt": []})), "prompt");
    assert_eq!(completion(json!({"prompt": "a", "suffix": "b"})), "suffix");
    assert_eq!(completion(json!({"prompt": vec!["a"; 41]})), Value::Null);
    let long = server.post("/v1/completions", &greedy(&"a fox ".repeat(300), 5)).error(400);
    assert_eq!((&long["code"], &long["param"]), (&json!("context_length_exceeded"), &json!("prompt")));
    let long = server.post("/v1/completions", &greedy("a fox", 256)).error(400);
    assert_eq!(long["code"], "context_length_exceeded");
    let model = server.post("/v1/completions", &json!({"prompt": "a", "model": "gpt"})).error(404);
    assert_eq!((&model["code"], &model["param"]), (&json!("model_not_found"), &json!("model")));
    assert_eq!(server.get("/v1/models/gpt").error(404)["code"], "model_not_found");
}

#[test]
fn malformed_requests_get_an_error_object() {
    let server = Server::start(&["--max-body", "1"]);
    let json = [("content-type", "application/json")];
    for body in ["", "{", "[]", "7", "{\"prompt\": \"\\ud800\"}"] {
        server.ask("POST", "/v1/completions", &json, Some(body)).error(400);
    }
    server.ask("POST", "/v1/completions", &[("content-type", "text/plain")], Some("{}")).error(400);
    server.ask("POST", "/v1/completions", &json, Some(&" ".repeat(1_000_001))).error(413);
    let deep = format!("{{\"prompt\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    server.ask("POST", "/v1/completions", &json, Some(&deep)).error(400);
    server.get("/v1/nothing").error(404);
    server.get("/v1/completions").error(405);
    // The server still works.
    assert_eq!(server.post("/v1/completions", &greedy("a", 1)).status, 200);
}

#[test]
fn everything_but_health_requires_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keys");
    std::fs::write(&file, "first\nsecond\n").unwrap();
    let server = Server::spawn(
        super::server::BASE,
        &["--api-key-file", file.to_str().unwrap()],
        &[("MLXCEL_API_KEY", "third")],
    );
    server.wait_until_ready();
    for path in ["/", "/metrics", "/v1/models", "/openapi.json", "/nothing"] {
        let refused = server.get(path);
        assert_eq!(refused.error(401)["code"], "invalid_api_key", "{path}");
        assert!(refused.header("www-authenticate").is_some());
    }
    let with = |key: &str| server.ask("GET", "/v1/models", &[("authorization", key)], None).status;
    for key in ["Bearer first", "Bearer second", "Bearer third", "Basic OnRoaXJk"] {
        assert_eq!(with(key), 200, "{key}");
    }
    for key in ["Bearer fourth", "Bearer ", "first", "Basic dGhpcmQ="] {
        assert_eq!(with(key), 401, "{key}");
    }
}

#[test]
fn only_configured_origins_are_allowed() {
    let server = Server::start(&["--cors-origin", "http://localhost:3000"]);
    let allowed = |origin: &str| {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        let reply = server.ask("OPTIONS", "/v1/completions", &headers, None);
        reply.header("access-control-allow-origin").map(str::to_owned)
    };
    assert_eq!(allowed("http://localhost:3000").as_deref(), Some("http://localhost:3000"));
    assert_eq!(allowed("http://elsewhere"), None);
    let closed = Server::start(&[]);
    let reply = closed.ask("GET", "/v1/models", &[("origin", "http://localhost:3000")], None);
    assert_eq!(reply.header("access-control-allow-origin"), None);
    assert!(reply.header("x-request-id").is_some_and(|id| id.starts_with("req-")));
}

#[test]
fn oversized_headers_are_rejected() {
    let server = Server::start(&[]);
    let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    let head = format!("GET /health HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    // The server may close the connection before everything is written.
    let _ = stream.write_all(head.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn the_openapi_document_describes_existing_routes() {
    let server = Server::start(&[]);
    let document = server.get("/openapi.json").ok();
    assert_eq!(document["openapi"], "3.1.0");
    for path in document["paths"].as_object().unwrap().keys() {
        let post = document["paths"][path]["post"].is_object();
        let reply = if post { server.post(path, &json!({})) } else { server.get(path) };
        let reached = if path.contains("{id}") { reply.status == 404 } else { reply.status == 200 || post };
        assert!(reached && (!post || reply.status == 400), "{path}: {}", reply.body);
    }
}
