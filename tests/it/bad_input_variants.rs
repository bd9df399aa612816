//! Variants of the errors in `fixtures/conformance/bad-input`: in another operation, in the base instead of a donor, in a
//! shard of a directory.

use std::fs;
use std::path::PathBuf;

use mlxcel::Code;

use crate::conformance::{errors, fixtures, plan, text};
use crate::refused::copy;
use crate::sparse;

/// The donor in a case's folder.
const DONOR: &str = "d.safetensors";

/// A copy of a case that a test may change.
struct Case {
    dir: tempfile::TempDir,
    name: String,
}

impl Case {
    fn new(name: &str) -> Self {
        let case = Self { dir: tempfile::tempdir().expect("a temporary directory"), name: name.to_owned() };
        copy(&fixtures("bad-input").join(name), case.dir.path());
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn with_operation(self, operation: &str) -> Self {
        let yaml = format!("version: 1\noperations:\n  - {{{operation}}}\n");
        fs::write(self.path("surgery.yaml"), yaml).expect("a file can be written");
        self
    }

    /// Every error's code; the text must have `mention`.
    #[track_caller]
    fn check(&self, expected: &[Code], mention: &str) {
        let (source, outcome) = plan(&self.path("surgery.yaml"), &self.path("model"));
        let Err(refusal) = outcome else { panic!("{} was planned", self.name) };
        let text = text(&source, &refusal.diagnostics);
        let codes: Vec<Code> = errors(&refusal).iter().map(|found| found.code).collect();
        assert_eq!(codes, expected, "{}\n{text}", self.name);
        let says = |found: &&mlxcel::Diagnostic| {
            [Some(&found.message), found.help.as_ref()]
                .into_iter()
                .flatten()
                .any(|said| said.contains(mention))
        };
        assert!(errors(&refusal).iter().any(says), "{} does not mention {mention}\n{text}", self.name);
    }
}

/// The cases whose donor is a file that cannot be read, and what the message says.
const UNREADABLE: [(&str, &str); 12] = [
    ("donor-lfs", "LFS"),
    ("donor-gguf", "GGUF"),
    ("donor-zip", "zip"),
    ("donor-html", "HTML"),
    ("donor-empty", "empty"),
    ("donor-short", "short"),
    ("donor-header-past-end", "interrupted download"),
    ("donor-duplicate-name", "model.norm.weight"),
    ("donor-overlap", "overlap"),
    ("donor-hole", ""),
    ("donor-size-disagrees", "model.norm.weight"),
    ("donor-negative-shape", ""),
];

#[test]
fn an_unreadable_donor_is_one_error_in_every_operation_that_has_donors() {
    for (name, mention) in UNREADABLE {
        for operation in [
            "op: add, pattern: model.norm.weight, source: d.safetensors",
            "op: replace, pattern: model.norm.weight, source: d.safetensors, source_key: model.norm.weight",
            "op: interpolate, pattern: model.norm.weight, source_a: d.safetensors, source_b: ok.safetensors, ratio: 0.5, method: lerp",
            "op: interpolate, pattern: model.norm.weight, source_a: ok.safetensors, source_b: d.safetensors, ratio: 0, method: slerp",
            // Both sides: still one file, and one mistake.
            "op: interpolate, pattern: model.norm.weight, source_a: d.safetensors, source_b: d.safetensors, ratio: 1, method: lerp",
        ] {
            Case::new(name).with_operation(operation).check(&[Code::DonorUnreadable], mention);
        }
    }
}

#[test]
fn the_same_file_as_a_base_is_an_unreadable_model() {
    for (name, mention) in UNREADABLE {
        let case = Case::new(name).with_operation("op: scale, pattern: model.norm.weight, factor: 2");
        fs::copy(case.path(DONOR), case.path("model/model.safetensors")).expect("a file can be copied");
        case.check(&[Code::ModelUnreadable], mention);
    }
}

/// Puts the bad file as the second of two shards into `dir`, with or without an index file.
fn shards(case: &Case, dir: &str, index: bool) {
    let dir = case.path(dir);
    fs::create_dir_all(&dir).expect("a directory can be made");
    let first = if index { "a.safetensors" } else { "model-1.safetensors" };
    let second = if index { "b.safetensors" } else { "model-2.safetensors" };
    sparse::write(&dir.join(first), "model.other.weight F32 4\n");
    fs::copy(case.path(DONOR), dir.join(second)).expect("a file can be copied");
    if index {
        let text = r#"{"weight_map": {"model.other.weight": "a.safetensors", "model.norm.weight": "b.safetensors"}}"#;
        fs::write(dir.join("model.safetensors.index.json"), text).expect("a file can be written");
    }
}

#[test]
fn a_bad_shard_is_one_error_that_names_it() {
    for (name, mention) in UNREADABLE {
        for index in [false, true] {
            let case = Case::new(name)
                .with_operation("op: add, pattern: model.norm.weight, source: donor, alpha: 0.5");
            shards(&case, "donor", index);
            case.check(&[Code::DonorUnreadable], mention);
            case.check(&[Code::DonorUnreadable], if index { "b.safetensors" } else { "model-2.safetensors" });

            let case = Case::new(name).with_operation("op: scale, pattern: model.norm.weight, factor: 2");
            fs::remove_file(case.path("model/model.safetensors")).expect("a file can be removed");
            shards(&case, "model", index);
            case.check(&[Code::ModelUnreadable], mention);
        }
    }
}

#[test]
fn an_index_that_lies_is_one_error_in_a_donor_too() {
    for (name, mention) in [
        ("index-missing-shard", "b.safetensors"),
        ("index-lies", "model.norm.weight"),
        ("index-traversal", "plain file name"),
    ] {
        for source in ["donor", "donor/model.safetensors.index.json"] {
            let case = Case::new(name);
            fs::rename(case.path("model"), case.path("donor")).expect("a directory can be renamed");
            copy(&fixtures("bad-input/factor-nan/model"), &case.path("model"));
            let case = case.with_operation(&format!("op: add, pattern: model.norm.weight, source: {source}"));
            case.check(&[Code::BadShardIndex], mention);
        }
    }
    let case = Case::new("same-tensor-twice");
    fs::rename(case.path("model"), case.path("donor")).expect("a directory can be renamed");
    copy(&fixtures("bad-input/factor-nan/model"), &case.path("model"));
    let case = case.with_operation("op: add, pattern: model.norm.weight, source: donor");
    case.check(&[Code::DonorUnreadable], "model.norm.weight");
}

#[test]
fn a_directory_and_its_own_index_file_are_one_donor() {
    let case = Case::new("index-good");
    copy(&case.path("model"), &case.path("donor"));
    let index = "donor/model.safetensors.index.json";
    let case = case.with_operation(&format!(
        "op: interpolate, pattern: model.norm.weight, source_a: donor, source_b: {index}, ratio: 0.5, method: lerp"
    ));
    let (_, outcome) = plan(&case.path("surgery.yaml"), &case.path("model"));
    assert_eq!(outcome.map(|plan| plan.donors().len()).map_err(|refusal| refusal.diagnostics), Ok(1));
}

#[test]
fn a_key_twice_in_a_json_file_is_named() {
    let case = Case::new("index-good");
    let path = case.path("model/model.safetensors.index.json");
    let text = fs::read_to_string(&path).expect("an index file");
    let first = r#""weight_map":"#;
    let twice = text.replacen(first, &format!("{first} {{}}, {first}"), 1);
    assert_ne!(twice, text);
    fs::write(&path, &twice).expect("a file can be written");
    case.check(&[Code::BadShardIndex], "`weight_map` occurs twice");
    let at = text.find(first).expect("a map") + first.len();
    let open = at + text[at..].find('{').expect("a brace") + 1;
    let key = "\"model.norm.weight\": \"a.safetensors\", \"model.norm.weight\": \"a.safetensors\", ";
    fs::write(&path, format!("{}{key}{}", &text[..open], &text[open..])).expect("a file can be written");
    case.check(&[Code::BadShardIndex], "lists `model.norm.weight` more than once");

    let case = Case::new("prefix-hint").with_operation("op: scale, pattern: model.norm.weight, factor: 2");
    let path = case.path("model/config.json");
    let text = fs::read_to_string(&path).expect("a config");
    fs::write(&path, text.replacen('{', r#"{"vocab_size": 1, "vocab_size": 2, "#, 1))
        .expect("a file can be written");
    case.check(&[Code::ModelUnreadable], "`vocab_size`");
}

#[test]
fn a_number_of_config_that_is_none_matters_only_where_it_is_needed() {
    for word in ["NaN", "Infinity", "-Infinity"] {
        let case = Case::new("factor-nan").with_operation("op: scale, pattern: model.norm.weight, factor: 2");
        let path = case.path("model/config.json");
        let text = fs::read_to_string(&path).expect("a config");
        fs::write(&path, text.replacen('{', &format!("{{\"router_aux_loss_coef\": {word}, "), 1))
            .expect("a file can be written");
        let (_, outcome) = plan(&case.path("surgery.yaml"), &case.path("model"));
        assert!(outcome.is_ok(), "{word}");

        let mut config: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        config["num_attention_heads"] = "HERE".into();
        fs::write(&path, config.to_string().replace("\"HERE\"", word)).expect("a file can be written");
        let case = case.with_operation(
            "op: prune, granularity: attention_head, pattern: 'model.layers.*', head_ids: [0]",
        );
        case.check(&[Code::UnsupportedLayout], "num_attention_heads");
    }
}

/// Mistakes of values, each in every operation that has such a field.
const VALUES: [(&str, Code); 22] = [
    ("op: add, pattern: model.norm.weight, source: ok.safetensors, alpha: .nan", Code::NotFinite),
    ("op: add, pattern: model.norm.weight, source: ok.safetensors, alpha: .inf", Code::NotFinite),
    ("op: add, pattern: model.norm.weight, source: ok.safetensors, alpha: abc", Code::BadValue),
    ("op: add, pattern: model.norm.weight, source: ok.safetensors, factor: 2", Code::UnexpectedField),
    ("op: add, pattern: model.norm.weight, source: [ok.safetensors]", Code::BadValue),
    ("op: add, pattern: model.norm.weight, source: ''", Code::BadValue),
    ("op: add, pattern: model.norm.weight", Code::MissingField),
    (
        "op: interpolate, pattern: model.norm.weight, source_a: ok.safetensors, source_b: ok.safetensors, ratio: -.inf, method: lerp",
        Code::NotFinite,
    ),
    (
        "op: interpolate, pattern: model.norm.weight, source_a: ok.safetensors, source_b: ok.safetensors, ratio: -0.1, method: lerp",
        Code::RatioOutOfRange,
    ),
    (
        "op: interpolate, pattern: model.norm.weight, source_a: ok.safetensors, ratio: 0.1, method: lerp",
        Code::MissingField,
    ),
    ("op: prune, granularity: attention_head, pattern: 'model.layers.*', head_ids: [-1]", Code::BadValue),
    ("op: prune, granularity: mlp_channel, pattern: 'model.layers.*', channel_ids: [1.5]", Code::BadValue),
    ("op: prune, granularity: layer, pattern: 'model.layers.*', layer_ids: []", Code::EmptyIds),
    ("op: prune, granularity: mlp_channel, pattern: 'model.layers.*', channel_ids: []", Code::EmptyIds),
    (
        "op: prune, granularity: attention_head, pattern: 'model.layers.*', head_ids: [99]",
        Code::HeadOutOfRange,
    ),
    (
        "op: prune, granularity: mlp_channel, pattern: 'model.layers.*', channel_ids: [999999]",
        Code::ChannelOutOfRange,
    ),
    ("op: prune, granularity: layer, pattern: 'model.layers.*', head_ids: [1]", Code::UnexpectedField),
    (
        "op: prune, granularity: mlp_channel, pattern: 'model.layers.*', channel_ids: [0], head_ids: [1]",
        Code::UnexpectedField,
    ),
    ("op: prune, granularity: layer, pattern: 'model.[layers.*', layer_ids: [0]", Code::BadGlob),
    (
        "op: replace, pattern: '{model.norm.weight', source: ok.safetensors, source_key: model.norm.weight",
        Code::BadGlob,
    ),
    (
        "op: replace, pattern: model.norm.weight, source: ok.safetensors, source_key: 'model.*.weight'",
        Code::WildcardMismatch,
    ),
    (
        "op: replace, pattern: model.nrm.weight, source: ok.safetensors, source_key: model.norm.weight",
        Code::NoMatch,
    ),
];

#[test]
fn a_mistake_in_a_value_is_one_error_in_every_operation() {
    for (operation, code) in VALUES {
        Case::new("donor-f64").with_operation(operation).check(&[code], "");
    }
}

#[test]
fn donors_that_are_not_there_are_one_error_in_every_operation() {
    for operation in [
        "op: add, pattern: model.norm.weight, source: '~/nowhere.safetensors'",
        "op: replace, pattern: model.norm.weight, source: '~/nowhere.safetensors', source_key: a",
        "op: interpolate, pattern: model.norm.weight, source_a: '~/nowhere.safetensors', source_b: ok.safetensors, ratio: 0.5, method: lerp",
        "op: interpolate, pattern: model.norm.weight, source_a: ok.safetensors, source_b: '~/nowhere.safetensors', ratio: 0.5, method: lerp",
    ] {
        Case::new("donor-f64")
            .with_operation(operation)
            .check(&[Code::DonorNotFound], "`~` and `$VAR` are not expanded");
    }
}

#[test]
fn one_mistake_of_an_operation_does_not_hide_its_others() {
    let both =
        |operation: &str, codes: &[Code]| Case::new("donor-f64").with_operation(operation).check(codes, "");
    both(
        "op: add, pattern: model.nrm.weight, source: nowhere.safetensors, alfa: 1",
        &[Code::NoMatch, Code::DonorNotFound, Code::UnknownField],
    );
    both(
        "op: scale, fctor: abc, pattern: 'model.nrm.*'",
        &[Code::UnknownField, Code::BadValue, Code::NoMatch],
    );
    both("op: skale, factor: 2, pattern: 'model.nrm.*'", &[Code::UnknownOperation, Code::NoMatch]);
    both("pattern: 'model.nrm.*', factor: 2", &[Code::MissingField, Code::NoMatch]);
    both(
        "op: add, alpha: x, pattern: model.layers.0.mlp.up_proj.weight, source: ok.safetensors",
        &[Code::BadValue, Code::DonorKeyMissing],
    );
    both(
        "op: prune, granularity: layer, pattern: 'model.layers.*', layer_ids: [x, 99]",
        &[Code::BadValue, Code::LayerOutOfRange],
    );
    // A field that says nothing known may have been meant to narrow the pattern: what it hits is not judged.
    both(
        "op: add, pattern: 'model.*', source: ok.safetensors, but_not: 'model.layers.*'",
        &[Code::UnknownField],
    );
    // The same of an exclusion that cannot be read.
    both("op: add, pattern: 'model.*', source: ok.safetensors, exclude: '['", &[Code::BadGlob]);
}
