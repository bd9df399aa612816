//! How responses identify their weights.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::server::{BASE, Server, greedy, root, surgery};
use crate::program::{command, ended};

const TUNED: &str = "fixtures/models/tiny-tales/tuned";

fn fingerprint(server: &Server) -> String {
    let reply = server.post("/v1/completions", &greedy("One", 1)).ok();
    reply["system_fingerprint"].as_str().unwrap().to_owned()
}

fn task_vector(alpha: f64) -> String {
    let donor = root().join("fixtures/models/tiny-tales/task_vector.safetensors");
    format!("[{{op: add, pattern: '*', source: '{}', alpha: {alpha}}}]", donor.display())
}

#[test]
fn responses_identify_the_surgery() {
    let (_dir, file) = surgery(&task_vector(1.0));
    let server = Server::start(&["--surgery", &file]);
    let models = server.get("/v1/models").ok();
    let meta = &models["data"][0]["meta"]["surgery"];
    let digest = meta["digest"].as_str().unwrap();
    assert!(digest.starts_with("sha256:"), "{meta}");
    assert_eq!(
        (&meta["file"], &meta["operations"], &meta["tensors_edited"]),
        (&json!(file), &json!(1), &json!(38))
    );
    assert_eq!((&meta["active"], meta["weights_sha256"].as_str().unwrap().len()), (&json!(true), 64));
    assert!(meta["donors"][0].as_str().unwrap().ends_with("task_vector.safetensors"));
    assert_eq!(models["data"][0]["id"], "base");
    let one = server.get("/v1/models/base");
    assert_eq!(
        (one.header("x-mlxcel-surgery"), one.ok()["meta"].clone()),
        (Some(digest), models["data"][0]["meta"].clone())
    );
    let health = server.get("/health").ok();
    assert_eq!(health, json!({"status": "ok", "surgery": {"active": true, "digest": digest}}));
    let reply = server.post("/v1/completions", &greedy("One", 1));
    assert_eq!(reply.header("x-mlxcel-surgery"), Some(digest));
    let mark = &digest["sha256:".len()..][..12];
    assert!(fingerprint(&server).ends_with(&format!("-f32-s:{mark}")), "{}", fingerprint(&server));
    let metrics = server.get("/metrics").body;
    assert!(
        metrics.contains(&format!("mlxcel_surgery_info{{digest=\"{digest}\",operations=\"1\"}} 1")),
        "{metrics}"
    );
    assert!(server.metric("mlxcel_surgery_tensors_touched") > 37.0);
    assert!(server.metric("mlxcel_surgery_apply_seconds") > 0.0);
}

#[test]
fn answers_come_from_the_edited_weights() {
    let (_dir, file) = surgery(&task_vector(1.0));
    let request = greedy("One morning Anna", 40);
    let edited = Server::start(&["--surgery", &file]).text(&request);
    assert_eq!(edited, Server::start_model(TUNED, &[]).text(&request));
    assert_ne!(edited, Server::start(&[]).text(&request));
}

#[test]
fn surgery_without_effect_has_no_identity() {
    let plain = Server::start(&[]);
    let request = json!({"prompt": "One morning Anna", "max_tokens": 40, "temperature": 1, "seed": 3});
    let wanted = (fingerprint(&plain), plain.text(&request));
    assert!(wanted.0.ends_with("-s:none"), "{}", wanted.0);
    for operations in ["[]", "[{op: scale, pattern: '*.o_proj.weight', factor: 1.0}]"] {
        let (_dir, file) = surgery(operations);
        let server = Server::start(&["--surgery", &file]);
        assert_eq!((fingerprint(&server), server.text(&request)), wanted, "{operations}");
        assert_eq!(server.get("/health").header("x-mlxcel-surgery"), Some("none"));
    }
    let native = Server::start(&["--dtype", "bf16"]);
    assert_ne!(fingerprint(&native), wanted.0);
}

#[test]
fn both_models_are_served() {
    let (_dir, file) = surgery(&task_vector(1.0));
    let server = Server::start(&["--surgery", &file, "--keep-base", "--alias", "tales"]);
    let ask = |model: &str| {
        let mut request = greedy("One morning Anna", 40);
        request["model"] = model.into();
        server.post("/v1/completions", &request)
    };
    let request = greedy("One morning Anna", 40);
    let (base, tuned) = (Server::start(&[]), Server::start_model(TUNED, &[]));
    let text = |model: &str| ask(model).ok()["choices"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text("base@base"), base.text(&request));
    assert_eq!((text("base"), text("tales")), (tuned.text(&request), tuned.text(&request)));
    assert_eq!(ask("base@base").ok()["system_fingerprint"], fingerprint(&base));
    assert_eq!(ask("base@base").header("x-mlxcel-surgery"), Some("none"));
    assert!(ask("base").header("x-mlxcel-surgery").unwrap().starts_with("sha256:"));
    let models = server.get("/v1/models").ok();
    let ids: Vec<&Value> = models["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["base", "base@base"]);
    assert_eq!(models["data"][1]["meta"]["surgery"]["active"], false);
    assert_eq!(server.get("/v1/models/base@base").ok(), models["data"][1]);
}

#[test]
fn the_flag_overrides_the_environment() {
    let (_one, half) = surgery(&task_vector(0.5));
    let (_two, whole) = surgery(&task_vector(1.0));
    let digest = |more: &[&str], variable: &str| {
        let server = Server::spawn(BASE, more, &[("MLXCEL_SURGERY", variable)]);
        server.wait_until_ready();
        server.get("/health").header("x-mlxcel-surgery").unwrap().to_owned()
    };
    let (of_half, of_whole) = (digest(&["--surgery", &half], ""), digest(&["--surgery", &whole], ""));
    assert_ne!(of_half, of_whole);
    assert_eq!(digest(&[], &half), of_half);
    assert_eq!(digest(&["--surgery", &whole], &half), of_whole);
    assert_eq!(digest(&["--surgery", ""], &half), "none");
}

/// The port is in use, so that a program that binds it reports that instead.
#[test]
fn an_invalid_surgery_file_is_reported_before_the_port_is_bound() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (_dir, file) = surgery("[{op: scale, pattern: '*.o_prj.weight', factor: 2}]");
    let serve = |file: &str| {
        let common = ["serve", "--model", BASE, "--port", &port, "--surgery", file];
        ended(command(root()).args(common).output().unwrap())
    };
    let run = serve(&file);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("surgery::no_match") && !run.stderr.contains("listen"), "{}", run.stderr);
    fs::write(&file, "version: 1\noperations: []\n").unwrap();
    let run = serve(&file);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains(&format!("cannot listen on 127.0.0.1:{port}: ")), "{}", run.stderr);
}

#[test]
fn the_log_has_one_line_per_operation() {
    let operations = "[{op: scale, pattern: '*.o_proj.weight', factor: 0.5}, \
                      {op: scale, pattern: '*.0.mlp.down_proj.weight', factor: 0}]";
    let (_dir, file) = surgery(operations);
    let mut program = command(root());
    program.args(["serve", "--model", BASE, "--port", "0", "--log-format", "json", "--surgery", &file]);
    let mut child =
        program.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let mut log: Vec<Value> = Vec::new();
    for line in lines {
        log.push(serde_json::from_str(&line.unwrap()).expect("a JSON object a line"));
        if log.last().unwrap()["message"] == "ready" {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let has = |start: &str| {
        log.iter().any(|line| line["message"].as_str().is_some_and(|message| message.starts_with(start)))
    };
    assert!(has("surgery #1 scale: 4 tensors") && has("surgery #2 scale: 1 tensor"), "{log:#?}");
    assert!(has("loaded; computing in f32"), "{log:#?}");
}
