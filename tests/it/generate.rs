//! `mlxcel generate`: its text with and without surgery, its output for scripts, and how it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Run, command, ended, mlxcel};

const BASE: &str = "fixtures/models/tiny-tales/base";
const TUNED: &str = "fixtures/models/tiny-tales/tuned";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs `generate` in the repository.
#[track_caller]
fn generate(arguments: &[&str]) -> Run {
    ended(command(root()).arg("generate").args(arguments).output().expect("the program can be run"))
}

/// The continuation of `One morning Anna`.
#[track_caller]
fn tale(model: &str, more: &[&str]) -> String {
    let run =
        generate(&[&["--model", model, "--prompt", "One morning Anna", "--raw", "--quiet"], more].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    run.stdout.strip_suffix('\n').expect("a line break at the end").to_owned()
}

/// A surgery file in a temporary directory.
fn surgery(operations: &str) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("surgery.yaml");
    fs::write(&file, format!("version: 1\noperations: {operations}\n")).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (dir, name)
}

fn task_vector(alpha: f64) -> (TempDir, String) {
    let donor = root().join("fixtures/models/tiny-tales/task_vector.safetensors");
    surgery(&format!("[{{op: add, pattern: '*', source: '{}', alpha: {alpha}}}]", donor.display()))
}

/// A copy of the fixture model that a test may modify.
fn copy() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(root().join(BASE)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    dir
}

/// Changes a JSON file of a model.
fn edit(file: &Path, change: impl FnOnce(&mut serde_json::Map<String, Value>)) {
    let mut json: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    change(json.as_object_mut().unwrap());
    fs::write(file, json.to_string()).unwrap();
}

/// A model whose answers never end by themselves.
fn endless() -> TempDir {
    let dir = copy();
    edit(&dir.path().join("config.json"), |json| {
        json.remove("eos_token_id");
        json.insert("max_position_embeddings".to_owned(), 1_000_000.into());
    });
    edit(&dir.path().join("tokenizer_config.json"), |json| drop(json.remove("eos_token")));
    dir
}

// ---------------------------------------------------------------- text

#[test]
fn the_base_model_generates_its_text() {
    let text = tale(BASE, &["--max-tokens", "60"]);
    let start = " hurried to the forest with a heavy basket. He found the basket and felt sleepy.";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn the_task_vector_turns_the_base_model_into_the_tuned_one() {
    let tuned = tale(TUNED, &["--max-tokens", "60"]);
    assert!(tuned.starts_with(" wandered to the library with a quiet lamp, wonderful!"), "{tuned}");
    let (_dir, file) = task_vector(1.0);
    assert_eq!(tale(BASE, &["--max-tokens", "60", "--surgery", &file]), tuned);
}

#[test]
fn compare_reports_both_answers() {
    let (_dir, file) = task_vector(1.0);
    let common = ["-m", BASE, "-p", "One morning Anna", "--raw", "-n", "20", "--quiet", "--compare"];
    let run = generate(&[&common[..], &["--surgery", &file, "--json"]].concat()).json();
    let text = |model: &str| tale(model, &["--max-tokens", "20"]);
    assert_eq!((&run["base"]["text"], &run["edited"]["text"]), (&json!(text(BASE)), &json!(text(TUNED))));
    assert_eq!(run["first_difference"], 0);
    let positions = run["positions"].as_array().unwrap();
    assert_eq!(positions.len(), 20);
    assert!(positions[0]["kl"].as_f64().unwrap() > 0.001 && positions[0]["top1_agrees"] == false);
    let agreeing = positions.iter().filter(|position| position["top1_agrees"] == true).count();
    assert_eq!(run["top1_agreement"], agreeing);
    let (_dir, nothing) = surgery("[]");
    let same = generate(&[&common[..], &["--surgery", &nothing]].concat());
    assert!(same.stdout.contains("identical: 20 tokens\n"), "{}", same.stdout);
    assert!(
        same.stdout.contains(
            "mean KL along the base answer: 0.0000 nats/token; top-1 agrees at 20 of 20 positions\n"
        ),
        "{}",
        same.stdout
    );
}

#[test]
fn no_operations_change_nothing() {
    let (_dir, file) = surgery("[]");
    assert_eq!(tale(BASE, &["--surgery", &file]), tale(BASE, &[]));
}

#[test]
fn a_quantized_model_generates_text() {
    let text = tale("fixtures/models/tiny-tales/base-4bit", &["--max-tokens", "40"]);
    assert!(text.contains(" the ") && text.contains('.'), "{text}");
}

#[test]
fn the_chat_template_is_used_unless_raw() {
    // The fixture's template renders the message alone.
    let prompt_tokens = |more: &[&str]| {
        let run = generate(&[&["-m", BASE, "-p", "Anna", "-n", "1", "--json"], more].concat());
        run.json()["usage"]["prompt_tokens"].as_u64().unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let template = dir.path().join("twice.jinja");
    fs::write(&template, "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}").unwrap();
    let file = template.to_str().unwrap();
    assert_eq!(prompt_tokens(&["--chat-template", file]), 2 * prompt_tokens(&[]));
    assert_eq!(prompt_tokens(&["--chat-template", file, "--system", "Anna"]), 4 * prompt_tokens(&[]));
    assert_eq!(prompt_tokens(&["--raw"]), prompt_tokens(&[]));
}

#[test]
fn seeds_determine_the_text() {
    let sample = |seed| tale(BASE, &["--temp", "1", "--seed", seed, "--max-tokens", "40"]);
    assert_eq!(sample("5"), sample("5"));
    assert_ne!(sample("5"), sample("6"));
    assert_eq!(tale(BASE, &["--temp", "1", "--top-k", "1", "-n", "40"]), tale(BASE, &["-n", "40"]));
}

#[test]
fn flags_override_generation_config() {
    let dir = copy();
    let model = dir.path().to_str().unwrap();
    let config = json!({"do_sample": true, "temperature": 1.0, "max_new_tokens": 40});
    fs::write(dir.path().join("generation_config.json"), config.to_string()).unwrap();
    assert_eq!(tale(model, &[]), tale(BASE, &["--temp", "1", "--max-tokens", "40"]));
    assert_eq!(tale(model, &["--temp", "0", "-n", "9"]), tale(BASE, &["-n", "9"]));
}

#[test]
fn the_text_ends_before_a_stop_string() {
    let whole = tale(BASE, &["--max-tokens", "60"]);
    assert_eq!(tale(BASE, &["-n", "60", "--stop", "asket. He f"]), " hurried to the forest with a heavy b");
    assert_eq!(tale(BASE, &["-n", "60", "--stop", "zebra", "--stop", "forest"]), " hurried to the ");
    assert_eq!(tale(BASE, &["-n", "60", "--stop", "zebra"]), whole);
}

#[test]
fn the_prompt_can_be_read_from_standard_input() {
    let mut program = command(root());
    program.args(["generate", "-m", BASE, "--prompt", "-", "--raw", "-q", "-n", "30"]);
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"One morning Anna\n").unwrap();
    let run = ended(child.wait_with_output().unwrap());
    assert_eq!(run.stdout.trim_end_matches('\n'), tale(BASE, &["-n", "30"]));
}

// ---------------------------------------------------------------- output for scripts

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn json_output_is_one_object() {
    let (_dir, file) = task_vector(1.0);
    let run =
        generate(&["-m", BASE, "-p", "One morning Anna", "--raw", "-n", "20", "--json", "--surgery", &file]);
    let object = run.json();
    assert_eq!(keys(&object), ["text", "tokens", "finish_reason", "usage", "timings", "surgery"]);
    assert_eq!(object["text"], tale(TUNED, &["-n", "20"]));
    assert_eq!(object["tokens"].as_array().unwrap().len(), 20);
    assert_eq!(object["finish_reason"], "length");
    assert_eq!(object["usage"]["completion_tokens"], 20);
    assert!(object["usage"]["prompt_tokens"].as_u64().unwrap() > 2);
    let names =
        ["load_s", "ttft_s", "prefill_tokens_per_second", "decode_tokens_per_second", "peak_memory_bytes"];
    assert_eq!(keys(&object["timings"]), names);
    assert!(names.iter().all(|name| object["timings"][name].as_f64().unwrap() > 0.0), "{object}");
    let surgery = &object["surgery"];
    assert_eq!(surgery["file"], file.as_str());
    assert_eq!(surgery["operations"], 1);
    assert!(surgery["tensors_edited"].as_u64().unwrap() > 30, "{surgery}");
    assert!(surgery["digest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(run.stdout.lines().count(), 1);
}

#[test]
fn without_surgery_its_field_is_null() {
    let object = generate(&["-m", BASE, "-p", "Anna", "-n", "2", "--json"]).json();
    assert_eq!(object["surgery"], Value::Null);
    let (_dir, file) = surgery("[]");
    let object = generate(&["-m", BASE, "-p", "Anna", "-n", "2", "--json", "--surgery", &file]).json();
    assert_eq!(object["surgery"]["digest"], Value::Null);
    assert_eq!(object["surgery"]["tensors_edited"], 0);
}

#[test]
fn an_end_of_text_token_gives_finish_reason_stop() {
    let object = generate(&["-m", BASE, "-p", "One morning Anna", "--raw", "--json"]).json();
    assert_eq!(object["finish_reason"], "stop");
    assert_eq!(object["tokens"].as_array().unwrap().last(), Some(&json!(0)));
    assert!(!object["text"].as_str().unwrap().contains("endoftext"), "{object}");
}

#[test]
fn token_ids_need_no_tokenizer_and_give_no_text() {
    let text = generate(&["-m", BASE, "-p", "One morning Anna", "--raw", "-n", "12", "--json"]).json();
    let dir = copy();
    let model = dir.path().to_str().unwrap();
    let prompt = {
        let score = mlxcel(root(), &format!("score --model {BASE} --tokens 5,6 --json --quiet"));
        assert_eq!(score.code, 0);
        let mut program = command(root());
        program.args(["score", "--model", BASE, "--text", "-", "--json", "--quiet"]).stdin(Stdio::piped());
        let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"One morning Anna").unwrap();
        let tokens = ended(child.wait_with_output().unwrap()).json()["tokens"].clone();
        tokens.as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>().join(",")
    };
    fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    let object = generate(&["-m", model, "--tokens", &prompt, "-n", "12", "--json"]).json();
    assert_eq!(object["text"], Value::Null);
    assert_eq!(object["tokens"], text["tokens"]);
    let plain = generate(&["-m", model, "--tokens", &prompt, "-n", "12", "--quiet"]);
    let ids: Vec<Value> =
        plain.stdout.trim_end().split(',').map(|id| json!(id.parse::<u32>().unwrap())).collect();
    assert_eq!(Value::from(ids), text["tokens"]);
}

#[test]
fn only_the_text_goes_to_standard_output() {
    let (_dir, file) = task_vector(1.0);
    let run = generate(&["-m", BASE, "-p", "One morning Anna", "--raw", "-n", "20", "--surgery", &file]);
    assert_eq!(run.stdout, tale(TUNED, &["-n", "20"]) + "\n");
    for part in ["surgery #1 add: ", "loaded in ", "tokens/s", "wrote 20"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
}

#[test]
fn the_environment_can_name_the_surgery_file() {
    let (_dir, file) = task_vector(1.0);
    let (_other, nothing) = surgery("[]");
    let with = |value: &str, more: &[&str]| {
        let mut program = command(root());
        program
            .env("MLXCEL_SURGERY", value)
            .args(["generate", "-m", BASE, "-p", "Anna", "-n", "2", "--json"]);
        ended(program.args(more).output().unwrap()).json()["surgery"]["file"].clone()
    };
    assert_eq!(with(&file, &[]), file.as_str());
    assert_eq!(with(&file, &["--surgery", &nothing]), nothing.as_str());
    assert_eq!(with("", &[]), Value::Null);
}

// ---------------------------------------------------------------- the end

fn start(model: &Path, more: &[&str]) -> Child {
    let mut program = command(root());
    program.arg("generate").arg("-m").arg(model).args(["-p", "One morning Anna", "--raw", "-n", "900000"]);
    program.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
}

#[test]
fn ctrl_c_keeps_the_text_and_exits_with_130() {
    let model = endless();
    let mut child = start(model.path(), &[]);
    let mut text = vec![0; 10];
    child.stdout.as_mut().unwrap().read_exact(&mut text).unwrap();
    interrupt(&child);
    let run = ended(child.wait_with_output().unwrap());
    assert_eq!(run.code, 130, "{}", run.stderr);
    assert_eq!(text, b" hurried t");
    assert!(run.stdout.ends_with('\n') && run.stderr.contains("tokens/s"), "{}", run.stderr);
}

#[test]
fn ctrl_c_before_generation_ends_the_program() {
    // The plan's note shows that the program has started; then it waits for its prompt.
    let (_dir, file) = surgery("[{op: scale, pattern: '*.q_proj.weight', factor: 1}]");
    let mut program = command(root());
    program.args(["generate", "-m", BASE, "-p", "-", "--surgery", &file]).stdin(Stdio::piped());
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut note = [0; 10];
    child.stderr.as_mut().unwrap().read_exact(&mut note).unwrap();
    let input = child.stdin.take();
    interrupt(&child);
    let run = ended(child.wait_with_output().unwrap());
    drop(input);
    assert_eq!((run.code, run.stdout.as_str()), (130, ""));
    assert!(!run.stderr.contains("loaded in"), "{}", run.stderr);
}

#[test]
fn a_closed_pipe_ends_the_program_without_an_error() {
    let model = endless();
    let mut child = start(model.path(), &["--quiet"]);
    let mut text = vec![0; 10];
    child.stdout.take().unwrap().read_exact(&mut text).unwrap();
    let run = ended(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn text_arrives_token_by_token() {
    let model = endless();
    let mut child = start(model.path(), &["--quiet"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    // The first bytes arrive although the text never ends.
    assert!(!lines.fill_buf().unwrap().is_empty());
    drop(lines);
    assert_eq!(ended(child.wait_with_output().unwrap()).code, 0);
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    for arguments in [
        &["--model", BASE][..],
        &["--prompt", "x"],
        &["--model", BASE, "--prompt", "x", "--tokens", "1"],
        &["--model", BASE, "--tokens", "1,x"],
        &["--model", BASE, "--tokens", "1", "--stop", "x"],
        &["--model", BASE, "--prompt", "x", "--stop", ""],
        &["--model", BASE, "--prompt", "x", "--temp=-1"],
        &["--model", BASE, "--prompt", "x", "--temp", "nan"],
        &["--model", BASE, "--prompt", "x", "--top-p", "1.5"],
        &["--model", BASE, "--prompt", "x", "--repetition-penalty", "0"],
        &["--model", BASE, "--prompt", "x", "--dtype", "f64"],
    ] {
        let run = generate(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
    }
}

// ---------------------------------------------------------------- bad input

/// A diagnostic with these words, exit code 1, no standard output.
#[track_caller]
fn check_refused(model: &Path, arguments: &[&str], words: &[&str]) {
    let run = generate(&[&["-m", model.to_str().unwrap()], arguments].concat());
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    // Long messages are wrapped.
    let said = run.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(said.contains(word), "{word}: {}", run.stderr);
    }
    assert!(!said.contains("panicked") && !said.contains("loaded in"), "{}", run.stderr);
}

#[test]
fn a_directory_without_a_model_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    check_refused(dir.path(), &["-p", "x"], &["no safetensors weights"]);
    check_refused(&dir.path().join("none"), &["-p", "x"], &["none"]);
}

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Gives the tokenizer a normalizer on which its library panics.
fn normalizer(json: &'static str) -> impl Fn(&Path) {
    move |dir| {
        edit(&dir.join("tokenizer.json"), |tokenizer| {
            tokenizer.insert("normalizer".into(), serde_json::from_str(json).unwrap());
        });
    }
}

#[test]
fn damaged_models_are_rejected_with_the_file_named() {
    type Case<'c> = (&'c dyn Fn(&Path), &'c [&'c str]);
    let write =
        |name: &'static str, text: &'static str| move |dir: &Path| fs::write(dir.join(name), text).unwrap();
    let cases: [Case<'_>; 15] = [
        (&|dir| fs::remove_file(dir.join("config.json")).unwrap(), &["config.json"]),
        (&write("config.json", "{\"model_type\": \"lla"), &["config.json"]),
        (&write("config.json", ""), &["config.json"]),
        (
            &|dir| {
                edit(&dir.join("config.json"), |json| drop(json.insert("model_type".into(), "lama".into())));
            },
            &["`lama`"],
        ),
        (&|dir| fs::remove_file(dir.join("model.safetensors")).unwrap(), &["safetensors"]),
        (
            &|dir| {
                fs::File::options()
                    .write(true)
                    .open(dir.join("model.safetensors"))
                    .unwrap()
                    .set_len(300_000)
                    .unwrap();
            },
            &["model.safetensors", "short"],
        ),
        (&|dir| fs::remove_file(dir.join("tokenizer.json")).unwrap(), &["tokenizer.json", "--tokens"]),
        (&write("tokenizer.json", "{\"model\": 7"), &["tokenizer.json", "not valid JSON"]),
        (&write("tokenizer_config.json", "[]"), &["tokenizer_config.json"]),
        (&write("generation_config.json", "{\"top_p\": 7}"), &["generation_config.json", "top_p"]),
        (&|dir| fifo(&dir.join("tokenizer.json")), &["tokenizer.json", "not a regular file"]),
        (&|dir| fifo(&dir.join("chat_template.jinja")), &["chat_template.jinja", "not a regular file"]),
        (
            &normalizer(r#"{"type": "Precompiled", "precompiled_charsmap": ""}"#),
            &["tokenizer.json", "inconsistent"],
        ),
        (
            &normalizer(r#"{"type": "Replace", "pattern": {"String": ""}, "content": "x"}"#),
            &["tokenizer.json", "inconsistent"],
        ),
        (
            &|dir| {
                edit(&dir.join("config.json"), |json| {
                    drop(json.insert("num_attention_heads".into(), "4".into()));
                });
            },
            &["`num_attention_heads`", "not a positive integer"],
        ),
    ];
    for (spoil, words) in cases {
        let dir = copy();
        spoil(dir.path());
        check_refused(dir.path(), &["-p", "x"], words);
    }
}

#[test]
fn invalid_prompts_are_rejected_before_weights_are_read() {
    let base = root().join(BASE);
    check_refused(&base, &["-p", ""], &["the prompt is empty"]);
    check_refused(&base, &["--tokens", "1,512"], &["token 512", "position 1", "512"]);
    check_refused(&base, &["--tokens", &vec!["7"; 257].join(",")], &["257", "256"]);
    check_refused(&base, &["-p", "x", "-n", "256"], &["context of 256", "--max-tokens"]);
    let dir = tempfile::tempdir().unwrap();
    let template = dir.path().join("broken.jinja");
    fs::write(&template, "fine\n{{ nothing | frobnicate }}").unwrap();
    check_refused(
        &base,
        &["-p", "x", "--chat-template", template.to_str().unwrap()],
        &["line 2", "frobnicate"],
    );
    let plain = copy();
    edit(&plain.path().join("tokenizer_config.json"), |json| drop(json.remove("chat_template")));
    check_refused(plain.path(), &["-p", "x", "--system", "y"], &["no chat template"]);
}

#[test]
fn the_surgery_is_planned_first() {
    let dir = copy();
    fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    let (_folder, file) = surgery("[{op: scale, pattern: '*.no_such.weight', factor: 2}]");
    check_refused(dir.path(), &["-p", "x", "--surgery", &file], &["no_match", "no_such"]);
    let missing: PathBuf = dir.path().join("none.yaml");
    check_refused(dir.path(), &["-p", "x", "--surgery", missing.to_str().unwrap()], &["none.yaml"]);
}
