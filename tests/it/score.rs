//! `mlxcel score`: log-probabilities of a text, and the logits file.

use std::fs;
use std::path::Path;

use safetensors::SafeTensors;
use serde_json::Value;

use crate::program::{Run, command, ended};

const BASE: &str = "fixtures/models/tiny-tales/base";

#[track_caller]
fn score(arguments: &[&str]) -> Run {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ended(
        command(root)
            .args(["score", "--model", BASE])
            .args(arguments)
            .output()
            .expect("the program can be run"),
    )
}

/// A temporary directory with a text and a surgery file.
struct Workspace(tempfile::TempDir);

impl Workspace {
    fn new(text: &str) -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        fs::write(workspace.0.path().join("text"), text).unwrap();
        workspace
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn surgery(&self, operations: &str) -> String {
        fs::write(self.0.path().join("surgery.yaml"), format!("version: 1\noperations: {operations}\n"))
            .unwrap();
        self.path("surgery.yaml")
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().filter_map(Value::as_f64).collect()
}

const TALE: &str = "One morning Anna hurried to the forest with a heavy basket.";

#[test]
fn every_token_but_the_first_has_a_log_probability() {
    let workspace = Workspace::new(TALE);
    let run = score(&["--text", &workspace.path("text"), "--json"]);
    let object = run.json();
    let names: Vec<&String> = object.as_object().unwrap().keys().collect();
    assert_eq!(names, ["tokens", "logprobs", "perplexity", "timings", "surgery"]);
    let count = object["tokens"].as_array().unwrap().len();
    let logprobs = numbers(&object["logprobs"]);
    assert!(object["logprobs"][0].is_null() && logprobs.len() == count - 1, "{object}");
    assert!(logprobs.iter().all(|logprob| *logprob < 0.0));
    let mean = logprobs.iter().sum::<f64>() / f64::from(u32::try_from(count - 1).unwrap());
    assert!((object["perplexity"].as_f64().unwrap() - (-mean).exp()).abs() < 1e-9);
    assert_eq!(object["surgery"], Value::Null);
    assert!(run.stderr.contains("scored"), "{}", run.stderr);
}

#[test]
fn the_logits_file_matches_the_log_probabilities() {
    let workspace = Workspace::new(TALE);
    let out = workspace.path("logits.safetensors");
    let object = score(&["--text", &workspace.path("text"), "--json", "--logits", &out]).json();
    let tokens: Vec<usize> = serde_json::from_value(object["tokens"].clone()).unwrap();
    let bytes = fs::read(&out).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.names(), ["logits"]);
    let logits = file.tensor("logits").unwrap();
    assert_eq!((logits.dtype(), logits.shape()), (safetensors::Dtype::F32, &[tokens.len(), 512][..]));
    let values: Vec<f64> = logits
        .data()
        .chunks_exact(4)
        .map(|bytes| f64::from(f32::from_le_bytes(bytes.try_into().unwrap())))
        .collect();
    for (position, logprob) in numbers(&object["logprobs"]).into_iter().enumerate() {
        let row = &values[position * 512..][..512];
        let sum: f64 = row.iter().map(|logit| logit.exp()).sum();
        let expected = row[tokens[position + 1]] - sum.ln();
        assert!((logprob - expected).abs() < 1e-9, "position {position}: {logprob}, {expected}");
    }
    // No temporary file is left.
    assert_eq!(fs::read_dir(workspace.0.path()).unwrap().count(), 2);
}

#[test]
fn token_ids_score_like_their_text() {
    let workspace = Workspace::new(TALE);
    let text = score(&["--text", &workspace.path("text"), "--json"]).json();
    let ids: Vec<String> = text["tokens"].as_array().unwrap().iter().map(Value::to_string).collect();
    let tokens = score(&["--tokens", &ids.join(","), "--json"]).json();
    assert_eq!(tokens["logprobs"], text["logprobs"]);
}

#[test]
fn no_operations_give_identical_logits() {
    let workspace = Workspace::new(TALE);
    let (without, with) = (workspace.path("without.safetensors"), workspace.path("with.safetensors"));
    let nothing = workspace.surgery("[]");
    assert_eq!(score(&["--text", &workspace.path("text"), "--logits", &without]).code, 0);
    assert_eq!(score(&["--text", &workspace.path("text"), "--logits", &with, "--surgery", &nothing]).code, 0);
    assert!(fs::read(without).unwrap() == fs::read(with).unwrap());
}

#[test]
fn an_edit_changes_the_perplexity() {
    let donor =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/task_vector.safetensors");
    let workspace = Workspace::new("One morning Anna wandered to the library with a quiet lamp, wonderful!");
    let vector = workspace.surgery(&format!("[{{op: add, pattern: '*', source: '{}'}}]", donor.display()));
    let perplexity = |more: &[&str]| {
        let run = score(&[&["--text", &workspace.path("text"), "--json"], more].concat());
        run.json()["perplexity"].as_f64().unwrap()
    };
    let (base, edited) = (perplexity(&[]), perplexity(&["--surgery", &vector]));
    assert!(edited * 3.0 < base, "base {base}, edited {edited}");
}

#[test]
fn text_output_has_one_line_per_token_and_the_perplexity() {
    let run = score(&["--tokens", "5,6,7", "--quiet"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], "5\t-");
    assert!(lines[1].starts_with("6\t-") && lines[3].starts_with("perplexity "), "{lines:?}");
    assert_eq!(run.stderr, "");
}

#[test]
fn a_single_token_has_no_perplexity() {
    let object = score(&["--tokens", "5", "--json"]).json();
    assert_eq!((&object["logprobs"], &object["perplexity"]), (&serde_json::json!([null]), &Value::Null));
}

#[track_caller]
fn check_refused(arguments: &[&str], words: &str) {
    let run = score(arguments);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    assert!(run.stderr.contains(words) && !run.stderr.contains("panicked"), "{words}: {}", run.stderr);
}

#[test]
fn invalid_texts_and_output_paths_are_rejected() {
    let workspace = Workspace::new("");
    check_refused(&["--text", &workspace.path("text")], "empty");
    check_refused(&["--text", &workspace.path("none")], "none");
    check_refused(&["--tokens", "600"], "600");
    check_refused(&["--tokens", &vec!["1"; 300].join(",")], "context");
    check_refused(
        &["--tokens", "1,2", "--logits", &workspace.path("none/logits.safetensors")],
        "none/logits.safetensors",
    );
    assert_eq!(score(&[]).code, 2);
}

#[test]
fn the_logits_file_never_overwrites_anything() {
    let workspace = Workspace::new(TALE);
    let logits = workspace.path("logits.safetensors");
    let (file, link) = (workspace.path("text"), workspace.path("link"));
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    for taken in [file.as_str(), link.as_str(), "/dev/null", BASE] {
        let run = score(&["--tokens", "1,2", "--logits", taken]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(run.stderr.contains("already exists"), "{}", run.stderr);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), TALE);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(score(&["--tokens", "1,2", "--logits", &logits]).code, 0);
    assert_eq!(score(&["--tokens", "1,2", "--logits", &logits]).code, 1);
}

#[test]
fn standard_input_and_a_file_give_the_same_tokens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tokens = |end: &str| {
        let workspace = Workspace::new(&format!("{TALE}{end}"));
        let mut piped = command(root);
        piped.args(["score", "--model", BASE, "--text", "-", "--json"]);
        piped.stdin(fs::File::open(workspace.path("text")).unwrap());
        let piped = ended(piped.output().expect("the program can be run")).json();
        let read = score(&["--text", &workspace.path("text"), "--json"]).json();
        assert_eq!(piped["tokens"], read["tokens"], "{end:?}");
        read["tokens"].as_array().unwrap().len()
    };
    let bare = tokens("");
    assert!(tokens("\n") > bare && tokens("\r\n") > bare, "a line break counts");
}

#[test]
fn missing_and_endless_files_are_rejected() {
    for endless in ["/dev/zero", "fixtures"] {
        let run = score(&["--text", endless]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(run.stderr.contains(endless), "{}", run.stderr);
    }
    for (text, help) in [
        ("Some literal text", "`--text` takes a file with the text, or `-`"),
        ("Cargo.tom", "did you mean `Cargo.toml`? `--text` takes a file"),
        (TALE.repeat(10).as_str(), "`--text` takes a file"),
    ] {
        let run = score(&["--text", text]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        let said = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(help), "{}", run.stderr);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let zeros = fs::File::open("/dev/zero").unwrap();
    let run = ended(
        command(root)
            .args(["score", "--model", BASE, "--text", "-"])
            .stdin(zeros)
            .output()
            .expect("the program can be run"),
    );
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("longer than 16 MiB"), "{}", run.stderr);
}
