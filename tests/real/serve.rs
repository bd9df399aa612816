//! `mlxcel serve` on the real model: what it says of its weights is what answers.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{MODEL, QUESTION, WEAKER_ATTENTION, surgery};

/// A running server, which ends with the value.
struct Server {
    child: Child,
    url: String,
}

/// Who answered, and what.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    fingerprint: String,
    mark: String,
    choices: Value,
}

impl Server {
    fn start(more: &[&str], variable: Option<&str>) -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_mlxcel"));
        program
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
            .args(["serve", "--model", MODEL, "--port", "0", "--quiet"])
            .args(more)
            .env_remove("MLXCEL_SURGERY")
            .env_remove("MLXCEL_API_KEY")
            .envs(variable.map(|file| ("MLXCEL_SURGERY", file)))
            .stdout(Stdio::piped());
        let mut child = program.spawn().expect("the program can be run");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line with the address");
        let server = Self { child, url: line.trim_end().to_owned() };
        let begin = Instant::now();
        while ureq::get(format!("{}/health", server.url)).call().is_err() {
            assert!(begin.elapsed() < Duration::from_mins(2), "not ready after two minutes");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn answer(&self, model: Option<&str>) -> Answer {
        let request = json!({"model": model, "messages": [{"role": "user", "content": QUESTION}], "temperature": 0,
            "max_tokens": 12, "logprobs": true});
        let reply = ureq::post(format!("{}/v1/chat/completions", self.url))
            .content_type("application/json")
            .send(request.to_string());
        let mut reply = reply.expect("an answer");
        let mark = reply.headers()["x-mlxcel-surgery"].to_str().unwrap().to_owned();
        let mut body: Value = serde_json::from_str(&reply.body_mut().read_to_string().unwrap()).unwrap();
        let fingerprint = body["system_fingerprint"].as_str().unwrap().to_owned();
        Answer { fingerprint, mark, choices: body["choices"].take() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn answer(more: &[&str], variable: Option<&str>) -> Answer {
    Server::start(more, variable).answer(None)
}

#[test]
fn the_fingerprint_differs_exactly_where_the_weights_do() {
    let dirs: Vec<_> = (0..4).map(|_| tempfile::tempdir().unwrap()).collect();
    let weaker = surgery(&dirs[0], WEAKER_ATTENTION);
    let again = surgery(&dirs[1], &format!("# by another name\n  {WEAKER_ATTENTION}"));
    let nothing = surgery(&dirs[2], "[]");
    let none = surgery(&dirs[3], "[{op: scale, pattern: '*.self_attn.o_proj.weight', factor: 1}]");

    let plain = answer(&[], None);
    assert!(plain.fingerprint.ends_with("-f32-s:none") && plain.mark == "none", "{plain:?}");
    assert_eq!(plain.choices[0]["message"]["content"], "The capital of France is Paris.");
    // To the last bit of every log-probability.
    assert_eq!(answer(&["--surgery", &nothing], None), plain);
    assert_eq!(answer(&["--surgery", &none], None), plain);

    let edited = answer(&["--surgery", &weaker], None);
    assert_ne!(edited.fingerprint, plain.fingerprint);
    assert_ne!(edited.choices, plain.choices);
    assert_eq!(answer(&["--surgery", &again], None), edited);
    // The variable works, and the flag wins.
    assert_eq!(answer(&[], Some(&weaker)), edited);
    assert_eq!(answer(&["--surgery", &nothing], Some(&weaker)), plain);

    let both = Server::start(&["--surgery", &weaker, "--keep-base"], None);
    assert_eq!(both.answer(None), edited);
    assert_eq!(both.answer(Some("smollm2-135m-instruct-4bit@base")), plain);
}

#[test]
fn eight_together_say_what_each_says_alone() {
    let server = Server::start(&["--max-batch", "8"], None);
    let ask = |number: usize| {
        let prompt = format!(
            "{} number {number} had",
            "A story of the forest, and of the house with the ".repeat(number)
        );
        let request =
            json!({"prompt": prompt, "temperature": 0.8, "seed": number, "max_tokens": 12, "logprobs": 1});
        let reply = ureq::post(format!("{}/v1/completions", server.url))
            .content_type("application/json")
            .send(request.to_string());
        let body = reply.expect("an answer").body_mut().read_to_string().unwrap();
        serde_json::from_str::<Value>(&body).unwrap()["choices"].take()
    };
    let alone: Vec<Value> = (0..8).map(ask).collect();
    let together: Vec<Value> = std::thread::scope(|scope| {
        let ask = &ask;
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || ask(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // Log-probabilities are compared to the last bit.
    assert_eq!(together, alone);
}
