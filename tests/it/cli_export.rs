//! `mlxcel surgery export` and `mlxcel surgery diff`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use crate::program::{Run, ended, mlxcel};
use crate::sparse;

const YAML: &str = "version: 1
operations:
- op: scale
  pattern: 'model.layers.*.mlp.down_proj.weight'
  factor: 0.5
- op: add
  pattern: model.norm.weight
  source: model/model.safetensors
";

/// A directory with a surgery file and a small model.
fn stage() -> tempfile::TempDir {
    let stage = tempfile::tempdir().expect("a temporary directory");
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales/base-bf16");
    std::os::unix::fs::symlink(model, stage.path().join("model")).expect("a link");
    fs::write(stage.path().join("surgery.yaml"), YAML).expect("a file");
    stage
}

#[track_caller]
fn check(stage: &tempfile::TempDir, arguments: &str, code: i32) -> Run {
    let run = mlxcel(stage.path(), arguments);
    assert_eq!(run.code, code, "{arguments}: {run:#?}");
    run
}

const EXPORT: &str = "surgery export surgery.yaml --model model --output new";

#[test]
fn an_export_says_on_standard_error_what_was_done() {
    let stage = stage();
    let run = check(&stage, EXPORT, 0);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.starts_with("#1 scale: "), "{}", run.stderr);
    assert!(run.stderr.contains("\n#2 add: 1 tensor, "), "{}", run.stderr);
    assert!(
        run.stderr.contains(" lost to rounding") || run.stderr.contains("relative change 100 %"),
        "{}",
        run.stderr
    );
    let last = run.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("wrote `new`: ") && last.contains(" tensors, digest sha256:"), "{last}");
    for name in ["config.json", "model.safetensors", "surgery.json", "tokenizer.json"] {
        assert!(stage.path().join("new").join(name).is_file(), "{name}");
    }
}

#[test]
fn an_export_of_nothing_says_that_it_is_a_copy() {
    let stage = stage();
    fs::write(stage.path().join("surgery.yaml"), "version: 1\noperations: []\n").expect("a file");
    let run = check(&stage, EXPORT, 0);
    assert!(run.stderr.starts_with("wrote `new`: "), "{}", run.stderr);
    assert!(run.stderr.ends_with(", unchanged: the surgery file has no effect\n"), "{}", run.stderr);
    let same = check(&stage, "surgery diff model new", 0);
    assert!(same.stdout.contains("  0 of "), "{}", same.stdout);
}

#[test]
fn a_broken_tie_is_compared_as_the_embedding_it_was() {
    let stage = stage();
    let yaml = "version: 1\noperations: [{op: scale, pattern: lm_head.weight, factor: 2}]\n";
    fs::write(stage.path().join("surgery.yaml"), yaml).expect("a file");
    check(&stage, EXPORT, 0);
    for arguments in ["surgery diff model new", "surgery diff model --surgery surgery.yaml"] {
        let text = check(&stage, arguments, 0).stdout;
        assert!(text.contains("lm_head.weight") && text.contains("change 100 %"), "{text}");
        assert!(text.contains("(tied to `model.embed_tokens.weight` in the first)"), "{text}");
        assert!(!text.contains("only in"), "{text}");
        let json = check(&stage, &format!("{arguments} --format json"), 0).json();
        assert_eq!(json["tensors"][0]["tie"]["to"], "model.embed_tokens.weight");
        assert_eq!(json["tensors"][0]["tie"]["side"], "first");
    }
    let text = check(&stage, "surgery diff new model", 0).stdout;
    assert!(text.contains("in the second)"), "{text}");
}

#[test]
fn a_surgery_file_in_place_of_weights_is_told_apart() {
    let stage = stage();
    for arguments in ["surgery diff model surgery.yaml", "surgery diff surgery.yaml model"] {
        let run = check(&stage, arguments, 1);
        assert!(run.stderr.contains("`surgery.yaml` is a YAML file, not a checkpoint"), "{}", run.stderr);
        assert!(run.stderr.contains("mlxcel surgery diff DIR --surgery surgery.yaml"), "{}", run.stderr);
    }
}

#[test]
fn as_json_it_is_one_object_with_the_report() {
    let stage = stage();
    let run = check(&stage, &format!("{EXPORT} --format json"), 0);
    let (object, record) = (run.json(), fs::read(stage.path().join("new/surgery.json")).expect("a record"));
    let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
    assert_eq!(object["report"], record["report"]);
    assert_eq!(object["digest"], record["digest"]);
    assert_eq!(record["surgery"], "surgery.yaml");
    assert_eq!(object["report"]["weights_sha256"].as_str().map(str::len), Some(64));
    assert_eq!(object["report"]["operations"][1]["relative_change"], 1.0);
}

#[test]
fn what_exists_is_never_written_over() {
    let stage = stage();
    check(&stage, EXPORT, 0);
    let run = check(&stage, EXPORT, 1);
    assert!(run.stderr.contains("output::output_exists"), "{}", run.stderr);
    let run = check(&stage, &format!("{EXPORT}/deeper/still --format json"), 1);
    let json = run.json();
    let last = json["diagnostics"].as_array().and_then(|all| all.last()).expect("a diagnostic");
    assert_eq!((&last["code"], &json["output"]), (&"output::output_unwritable".into(), &().into()));
}

#[test]
fn a_file_with_mistakes_writes_nothing() {
    let stage = stage();
    fs::write(stage.path().join("surgery.yaml"), YAML.replace("0.5", ".nan")).expect("a file");
    let run = check(&stage, EXPORT, 1);
    assert!(run.stderr.contains("surgery::not_finite"), "{}", run.stderr);
    assert!(!stage.path().join("new").exists());
}

#[test]
fn denied_warnings_write_nothing_and_say_so() {
    let stage = stage();
    let lost = "version: 1\noperations: [{op: scale, pattern: model.norm.weight, factor: 1.0001}]\n";
    fs::write(stage.path().join("surgery.yaml"), lost).expect("a file");
    let before = fs::read_dir(stage.path()).expect("it is there").count();
    let run = check(&stage, &format!("{EXPORT} --deny warnings"), 1);
    assert!(run.stderr.contains("surgery::lost_deltas"), "{}", run.stderr);
    let end = "\nnothing was written: warnings are errors because of `--deny warnings`\n";
    assert!(run.stderr.ends_with(end) && !run.stderr.contains("wrote"), "{}", run.stderr);
    let json = check(&stage, &format!("{EXPORT} --deny warnings --json"), 1).json();
    for nothing in ["output", "digest", "tensors", "bytes"] {
        assert!(json[nothing].is_null(), "{json}");
    }
    assert!(json["report"]["operations"][0]["lost"].as_u64() > Some(0), "{json}");
    assert_eq!(fs::read_dir(stage.path()).expect("it is there").count(), before, "something is left");
    // One that the planner finds is denied before anything is done.
    let tie = "version: 1\noperations: [{op: scale, pattern: lm_head.weight, factor: 2}]\n";
    fs::write(stage.path().join("surgery.yaml"), tie).expect("a file");
    let run = check(&stage, &format!("{EXPORT} --deny warnings"), 1);
    assert!(run.stderr.ends_with(end) && !run.stderr.contains("#1 scale"), "{}", run.stderr);
    assert_eq!(fs::read_dir(stage.path()).expect("it is there").count(), before, "something is left");
    let run = check(&stage, EXPORT, 0);
    assert!(!run.stderr.contains("denied"), "{}", run.stderr);
}

#[test]
fn the_export_differs_from_its_base_as_the_plan_said_it_would() {
    let stage = stage();
    check(&stage, EXPORT, 0);
    let [planned, written] =
        ["surgery diff model --surgery surgery.yaml", "surgery diff model new"].map(|arguments| {
            let json = check(&stage, &format!("{arguments} --format json"), 0).json();
            let text = check(&stage, arguments, 0).stdout;
            assert!(text.contains("model.layers.{0"), "{text}");
            assert!(text.contains("change 50 %"), "{text}");
            json
        });
    assert_eq!(planned["tensors"], written["tensors"]);
    assert_eq!(planned["summary"], written["summary"]);
    assert_eq!(planned["summary"]["only_second"], 0);
    let norm = planned["tensors"].as_array().and_then(|all| all.last()).expect("a difference");
    assert_eq!((&norm["key"], &norm["relative"]), (&"model.norm.weight".into(), &1.0.into()));
    let same = check(&stage, "surgery diff model model", 0);
    assert!(same.stdout.starts_with("  first   model\n  second  model\n\n  0 of "), "{}", same.stdout);
}

#[test]
fn a_diff_names_what_it_cannot_read() {
    let stage = stage();
    let run = check(&stage, "surgery diff model nowhere", 1);
    assert!(run.stderr.contains("nowhere"), "{}", run.stderr);
    check(&stage, "surgery diff model", 2);
    check(&stage, "surgery diff model model --surgery surgery.yaml", 2);
}

/// A model with a tied head, whose configuration reads as given.
fn tied(config: &str, index: &str) -> tempfile::TempDir {
    let stage = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| stage.path().join(name);
    sparse::write(&at("model/m.safetensors"), "model.embed_tokens.weight BF16 8,4\nmodel.norm.weight BF16 4");
    fs::write(at("model/config.json"), config).expect("a file");
    fs::write(at("model/model.safetensors.index.json"), index).expect("a file");
    let yaml = "version: 1\noperations: [{op: scale, pattern: lm_head.weight, factor: 2}]\n";
    fs::write(at("surgery.yaml"), yaml).expect("a file");
    stage
}

#[test]
fn a_broken_tie_changes_nothing_else_in_the_configuration() {
    let index = |total: &str| {
        format!(
            r#"{{"metadata": {{"total_size": {total}}}, "weight_map": {{
  "model.embed_tokens.weight": "m.safetensors",
  "model.norm.weight": "m.safetensors"
}}}}"#
        )
    };
    for (config, expected) in [
        (
            "\u{feff}{\n\t\"model_type\": \"llama\",\n\t\"std\": NaN,\n\t\"big\": 123456789012345678901\n}\n",
            "\u{feff}{\n\t\"model_type\": \"llama\",\n\t\"std\": NaN,\n\t\"big\": 123456789012345678901,\n\t\"tie_word_embeddings\": false\n}\n",
        ),
        (
            r#"{"tie_word_embeddings":true,"eps":1E-05,"model_type":"llama","limits":[-Infinity, Infinity]}"#,
            r#"{"tie_word_embeddings":false,"eps":1E-05,"model_type":"llama","limits":[-Infinity, Infinity]}"#,
        ),
    ] {
        for (total, sum) in [("72", "136"), ("72.0", "136"), ("18446744073709551615", "18446744073709551615")]
        {
            let stage = tied(config, &index(total));
            check(&stage, EXPORT, 0);
            let read = |name: &str| fs::read_to_string(stage.path().join("new").join(name)).expect("a file");
            assert_eq!(read("config.json"), expected);
            let listed =
                "  \"model.norm.weight\": \"m.safetensors\",\n  \"lm_head.weight\": \"m.safetensors\"\n";
            let new = index(sum).replace("  \"model.norm.weight\": \"m.safetensors\"\n", listed);
            assert_eq!(read("model.safetensors.index.json"), new);
            let keys = check(&stage, "surgery keys --model new --json", 0).json();
            assert_eq!(keys["keys"].as_array().map(Vec::len), Some(3));
        }
    }
}

#[test]
fn a_link_that_leads_nowhere_is_named_and_nothing_is_written() {
    let stage =
        tied(r#"{"model_type": "llama"}"#, r#"{"weight_map": {"model.norm.weight": "m.safetensors"}}"#);
    std::os::unix::fs::symlink("../blobs/0123", stage.path().join("model/tokenizer.json")).expect("a link");
    let run = check(&stage, EXPORT, 1);
    let text = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("it is a link to `../blobs/0123`, which does not exist"), "{}", run.stderr);
    assert!(!stage.path().join("new").exists());
}

#[test]
fn files_have_the_modes_that_a_copy_has() {
    let stage = tied(
        r#"{"model_type": "llama"}"#,
        r#"{"weight_map": {"model.norm.weight": "m.safetensors", "model.embed_tokens.weight": "m.safetensors"}}"#,
    );
    let at = |name: &str| stage.path().join(name);
    // The mode of each file, and those of its copies under two masks: `cp` never grants more, and no setuid.
    let modes = [
        ("config.json", 0o4444, [0o444, 0o440]),
        ("model.safetensors.index.json", 0o666, [0o644, 0o640]),
        ("run.py", 0o6755, [0o755, 0o750]),
        ("secret.txt", 0o600, [0o600, 0o600]),
        // The weights are not copied: who writes them may write them.
        ("m.safetensors", 0o440, [0o640, 0o640]),
        ("surgery.json", 0, [0o644, 0o640]),
    ];
    for name in ["run.py", "secret.txt"] {
        fs::write(at("model").join(name), "").expect("a file");
    }
    for (name, mode, _) in modes {
        let path = at("model").join(name);
        if path.exists() {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
    }
    // One that no other user may list, and into which nothing may be written.
    fs::set_permissions(at("model"), fs::Permissions::from_mode(0o1511)).expect("a mode");
    for (which, mask) in ["022", "027"].into_iter().enumerate() {
        let script = format!("umask {mask}; exec '{}' {EXPORT}{mask}", env!("CARGO_BIN_EXE_mlxcel"));
        let run = Command::new("sh").args(["-c", &script]).current_dir(stage.path()).output();
        let run = ended(run.expect("there is `sh`"));
        assert_eq!(run.code, 0, "{run:#?}");
        for (name, _, expected) in modes {
            let mode =
                fs::metadata(at(&format!("new{mask}")).join(name)).expect("it is there").mode() & 0o7777;
            assert_eq!(mode, expected[which], "{name} under {mask}: {mode:o}");
        }
        let directory = fs::metadata(at(&format!("new{mask}"))).expect("it is there").mode() & 0o7777;
        assert_eq!(directory, [0o711, 0o710][which], "under {mask}: {directory:o}");
        let config = fs::read_to_string(at(&format!("new{mask}/config.json"))).expect("a file");
        assert!(config.contains(r#""tie_word_embeddings": false"#), "{config}");
    }
}
