//! `mlxcel score`: the log-probabilities of a given text, and the logits behind them.

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

/// A text, a place for logits, a surgery file.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new(text: &str) -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        fs::write(desk.0.path().join("text"), text).unwrap();
        desk
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
fn a_text_has_a_log_probability_for_every_token_but_the_first() {
    let desk = Desk::new(TALE);
    let run = score(&["--text", &desk.path("text"), "--json"]);
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
fn the_logits_file_holds_what_the_log_probabilities_come_from() {
    let desk = Desk::new(TALE);
    let out = desk.path("logits.safetensors");
    let object = score(&["--text", &desk.path("text"), "--json", "--logits", &out]).json();
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
    // Nothing else is left in the folder.
    assert_eq!(fs::read_dir(desk.0.path()).unwrap().count(), 2);
}

#[test]
fn token_ids_score_as_their_text_does() {
    let desk = Desk::new(TALE);
    let text = score(&["--text", &desk.path("text"), "--json"]).json();
    let ids: Vec<String> = text["tokens"].as_array().unwrap().iter().map(Value::to_string).collect();
    let tokens = score(&["--tokens", &ids.join(","), "--json"]).json();
    assert_eq!(tokens["logprobs"], text["logprobs"]);
}

#[test]
fn no_operations_leave_every_bit_of_the_logits() {
    let desk = Desk::new(TALE);
    let (without, with) = (desk.path("without.safetensors"), desk.path("with.safetensors"));
    let nothing = desk.surgery("[]");
    assert_eq!(score(&["--text", &desk.path("text"), "--logits", &without]).code, 0);
    assert_eq!(score(&["--text", &desk.path("text"), "--logits", &with, "--surgery", &nothing]).code, 0);
    assert!(fs::read(without).unwrap() == fs::read(with).unwrap());
}

#[test]
fn an_edit_is_judged_by_its_perplexity() {
    let donor =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/task_vector.safetensors");
    let desk = Desk::new("One morning Anna wandered to the library with a quiet lamp, wonderful!");
    let vector = desk.surgery(&format!("[{{op: add, pattern: '*', source: '{}'}}]", donor.display()));
    let perplexity = |more: &[&str]| {
        let run = score(&[&["--text", &desk.path("text"), "--json"], more].concat());
        run.json()["perplexity"].as_f64().unwrap()
    };
    let (base, edited) = (perplexity(&[]), perplexity(&["--surgery", &vector]));
    assert!(edited * 3.0 < base, "base {base}, edited {edited}");
}

#[test]
fn without_json_there_is_a_line_for_each_token_and_one_for_the_perplexity() {
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
fn what_cannot_be_scored_or_written_is_refused() {
    let desk = Desk::new("");
    check_refused(&["--text", &desk.path("text")], "empty");
    check_refused(&["--text", &desk.path("none")], "none");
    check_refused(&["--tokens", "600"], "600");
    check_refused(&["--tokens", &vec!["1"; 300].join(",")], "context");
    check_refused(
        &["--tokens", "1,2", "--logits", &desk.path("none/logits.safetensors")],
        "none/logits.safetensors",
    );
    assert_eq!(score(&[]).code, 2);
}

#[test]
fn logits_are_never_written_over_anything() {
    let desk = Desk::new(TALE);
    let logits = desk.path("logits.safetensors");
    let (file, link) = (desk.path("text"), desk.path("link"));
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    for taken in [file.as_str(), link.as_str(), "/dev/null", BASE] {
        let run = score(&["--tokens", "1,2", "--logits", taken]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(run.stderr.contains("exists already"), "{}", run.stderr);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), TALE);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(score(&["--tokens", "1,2", "--logits", &logits]).code, 0);
    assert_eq!(score(&["--tokens", "1,2", "--logits", &logits]).code, 1);
}

#[test]
fn a_text_from_standard_input_has_the_tokens_of_the_same_bytes_in_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tokens = |end: &str| {
        let desk = Desk::new(&format!("{TALE}{end}"));
        let mut piped = command(root);
        piped.args(["score", "--model", BASE, "--text", "-", "--json"]);
        piped.stdin(fs::File::open(desk.path("text")).unwrap());
        let piped = ended(piped.output().expect("the program can be run")).json();
        let read = score(&["--text", &desk.path("text"), "--json"]).json();
        assert_eq!(piped["tokens"], read["tokens"], "{end:?}");
        read["tokens"].as_array().unwrap().len()
    };
    let bare = tokens("");
    assert!(tokens("\n") > bare && tokens("\r\n") > bare, "a line break counts");
}

#[test]
fn a_text_that_is_no_file_or_endless_is_refused() {
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
