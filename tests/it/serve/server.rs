//! A server of the built program, and a client for it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::command;

/// Guards tests against hanging; no test waits this long.
pub(super) const GUARD: Duration = Duration::from_mins(5);

pub(super) const BASE: &str = "fixtures/models/tiny-tales/base";

/// A running server, killed when dropped.
pub(super) struct Server {
    child: Child,
    pub(super) url: String,
}

/// An HTTP response.
pub(super) struct Reply {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

impl Server {
    /// A server of the fixture model on a free port, ready.
    pub(super) fn start(more: &[&str]) -> Self {
        Self::start_model(BASE, more)
    }

    /// A server of a model, ready.
    pub(super) fn start_model(model: &str, more: &[&str]) -> Self {
        let server = Self::spawn(model, more, &[]);
        server.wait_until_ready();
        server
    }

    /// A server that may not be ready yet, with variables in its environment.
    pub(super) fn spawn(model: &str, more: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::spawn_with_log(model, more, variables, Stdio::null())
    }

    /// A server that may not be ready yet and logs to `log`.
    pub(super) fn spawn_with_log(model: &str, more: &[&str], variables: &[(&str, &str)], log: Stdio) -> Self {
        let mut program = command(root());
        program.args(["serve", "--model", model, "--port", "0"]).args(more);
        program
            .env_remove("MLXCEL_API_KEY")
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = program.spawn().expect("the program can be run");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line with the address");
        let url = line.trim_end().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line:?}");
        Self { child, url }
    }

    /// Waits until the model is loaded.
    pub(super) fn wait_until_ready(&self) {
        let begin = Instant::now();
        while self.get("/health").status != 200 {
            assert!(begin.elapsed() < GUARD, "the server does not get ready");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], None)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, &[("content-type", "application/json")], Some(&body.to_string()))
    }

    /// Sends any request.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Reply {
        let mut response = self.send(method, path, headers, body);
        let body = response.body_mut().with_config().limit(64 << 20).read_to_string().expect("a text");
        let named = |(name, value): (&ureq::http::HeaderName, &ureq::http::HeaderValue)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let headers = response.headers().iter().map(named).collect();
        Reply { status: response.status().as_u16(), headers, body }
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> ureq::http::Response<ureq::Body> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(GUARD))
            .build()
            .into();
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = match body {
            Some(body) => agent.run(request.body(body.to_owned()).expect("a request")),
            None => agent.run(request.body(()).expect("a request")),
        };
        response.expect("a response")
    }

    /// The text of a completion.
    #[track_caller]
    pub(super) fn text(&self, request: &Value) -> String {
        self.post("/v1/completions", request).ok()["choices"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// A stream; dropping it closes the connection.
    pub(super) fn stream(&self, path: &str, body: &Value) -> Events {
        let mut body = body.clone();
        body["stream"] = true.into();
        let headers = [("content-type", "application/json")];
        let response = self.send("POST", path, &headers, Some(&body.to_string()));
        let status = response.status().as_u16();
        assert_eq!(status, 200);
        Events(BufReader::new(Box::new(response.into_body().into_reader())))
    }

    /// A value of `/metrics`.
    #[track_caller]
    pub(super) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").body;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
    }

    /// Sends a signal by name.
    pub(super) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.expect("kill can be run").success());
    }

    /// Waits until the program ends; returns its exit code.
    pub(super) fn wait_for_exit(&mut self) -> Option<i32> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            assert!(begin.elapsed() < GUARD, "the program does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Resident memory in kB.
    pub(super) fn resident_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    /// The body of a response with status 200.
    #[track_caller]
    pub(super) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The error object of a response with this status.
    #[track_caller]
    pub(super) fn error(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        let body: Value = serde_json::from_str(&self.body).expect("JSON");
        let error = body["error"].as_object().unwrap_or_else(|| panic!("no error object: {body}"));
        assert!(
            ["message", "type", "param", "code"].iter().all(|field| error.contains_key(*field)),
            "{body}"
        );
        body["error"].clone()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Server-sent events as they arrive.
pub(super) struct Events(BufReader<Box<dyn Read + Send>>);

impl Iterator for Events {
    type Item = String;

    /// The data of the next event.
    fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(data.trim_end().to_owned());
            }
            assert!(line.trim().is_empty() || line.starts_with(':'), "{line:?}");
        }
    }
}

impl Events {
    /// All chunks of a stream that must end with `[DONE]`.
    #[track_caller]
    pub(super) fn chunks(self) -> Vec<Value> {
        let mut all: Vec<String> = self.collect();
        assert_eq!(all.pop().as_deref(), Some("[DONE]"), "{all:?}");
        all.iter().map(|data| serde_json::from_str(data).expect("JSON")).collect()
    }
}

/// The texts of the choices, joined from the chunks.
pub(super) fn joined_texts(chunks: &[Value], choices: usize) -> Vec<String> {
    let mut texts = vec![String::new(); choices];
    for choice in chunks.iter().flat_map(|chunk| chunk["choices"].as_array().expect("choices")) {
        let index = usize::try_from(choice["index"].as_u64().expect("an index")).unwrap();
        let text = choice["text"].as_str().or(choice["delta"]["content"].as_str());
        texts[index] += text.unwrap_or_default();
    }
    texts
}

/// A surgery file in a temporary directory.
pub(super) fn surgery(operations: &str) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("surgery.yaml");
    fs::write(&file, format!("version: 1\noperations: {operations}\n")).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (dir, name)
}

/// A copy of the fixture model whose answers never end by themselves.
pub(super) fn endless() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("endless");
    fs::create_dir(&model).unwrap();
    for entry in fs::read_dir(root().join(BASE)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), model.join(entry.file_name())).unwrap();
    }
    edit(&model.join("config.json"), |json| {
        json.remove("eos_token_id");
        json.insert("max_position_embeddings".to_owned(), 1_000_000.into());
    });
    edit(&model.join("tokenizer_config.json"), |json| drop(json.remove("eos_token")));
    (dir, model)
}

fn edit(file: &Path, change: impl FnOnce(&mut serde_json::Map<String, Value>)) {
    let mut json: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    change(json.as_object_mut().unwrap());
    fs::write(file, json.to_string()).unwrap();
}

/// A greedy completion request.
pub(super) fn greedy(prompt: &str, tokens: usize) -> Value {
    json!({"prompt": prompt, "max_tokens": tokens, "temperature": 0})
}
