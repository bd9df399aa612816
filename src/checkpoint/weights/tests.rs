use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;

use super::super::testing::{Dir, bytes, raw};
use super::super::{Listing, Origin, ReadError, ReadErrorKind, ReadWarning};
use super::Weights;

fn keys(weights: &Weights) -> Vec<&str> {
    weights.index.entries().iter().map(|(key, _)| key.as_str()).collect()
}

#[track_caller]
fn opened(path: &Path) -> Weights {
    Weights::open(path).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[track_caller]
fn refused(path: &Path, kind: ReadErrorKind, reason: &str) -> ReadError {
    let mut errors = Weights::open(path).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    let error = errors.remove(0);
    assert_eq!((error.kind, error.reason.as_str()), (kind, reason));
    assert!(error.help.is_some(), "no help: {error}");
    error
}

fn files(weights: &Weights) -> Vec<String> {
    weights
        .shards
        .iter()
        .map(|shard| shard.path.file_name().unwrap().to_string_lossy().into_owned())
        .collect()
}

const BAD: ReadErrorKind = ReadErrorKind::BadIndex;
const UNREADABLE: ReadErrorKind = ReadErrorKind::Unreadable;

#[test]
fn a_file_is_opened_by_itself() {
    let dir = Dir::new().with("delta", bytes(&["b", "a"])).with("other.safetensors", bytes(&["a"]));
    let weights = opened(&dir.join("delta"));
    assert_eq!((keys(&weights), files(&weights)), (vec!["a", "b"], vec!["delta".to_owned()]));
    let info = weights.index.get("a").unwrap();
    let (shard, range) = weights.locate(info);
    assert_eq!((shard.path.clone(), range), (dir.join("delta"), shard.data_start + 2..shard.data_start + 4));
}

#[test]
fn without_an_index_the_model_files_are_read() {
    let all =
        ["model-1.safetensors", "model-2.safetensors", "extra.safetensors", "adapter_model.safetensors"];
    let mut dir = Dir::new();
    for (n, name) in all.iter().enumerate() {
        dir = dir.with(name, bytes(&[&format!("t{n}")]));
    }
    let dir =
        dir.with("._model-1.safetensors", "not weights").with("consolidated.safetensors", "not weights");
    assert_eq!(files(&opened(dir.path())), ["model-1.safetensors", "model-2.safetensors"]);

    fs::remove_file(dir.join("model-1.safetensors")).unwrap();
    fs::remove_file(dir.join("model-2.safetensors")).unwrap();
    assert_eq!(files(&opened(dir.path())), ["extra.safetensors"]);
}

#[test]
fn a_tied_key_is_located_where_its_bytes_are() {
    let dir = Dir::new()
        .with("model.safetensors", bytes(&["model.embed_tokens.weight", "x"]))
        .with("config.json", "{}");
    let checkpoint = super::super::Checkpoint::open(dir.path()).unwrap();
    let weights = &checkpoint.weights;
    let head = weights.index.get("lm_head.weight").unwrap();
    let embedding = weights.index.get("model.embed_tokens.weight").unwrap();
    assert!(matches!(&head.origin, Origin::Tied(key) if key.as_str() == "model.embed_tokens.weight"));
    assert_eq!(weights.locate(head).1, weights.locate(embedding).1);
}

#[test]
fn an_index_names_the_files_and_strays_are_ignored() {
    let dir = Dir::new()
        .with("a.safetensors", bytes(&["x", "y"]))
        .with("b.safetensors", bytes(&["z"]))
        .with("model.safetensors", "a stray that is not even weights")
        .with_index(&[("b.safetensors", &["z"]), ("a.safetensors", &["y", "x"])]);
    for path in [dir.path().to_owned(), dir.join("model.safetensors.index.json")] {
        let weights = opened(&path);
        assert_eq!((keys(&weights), weights.warnings.len()), (vec!["x", "y", "z"], 0));
        assert_eq!(files(&weights), ["a.safetensors", "b.safetensors"]);
    }
}

#[test]
fn an_unlisted_tensor_is_included_with_a_warning() {
    let dir =
        Dir::new().with("a.safetensors", bytes(&["a", "x", "z"])).with_index(&[("a.safetensors", &["x"])]);
    let weights = opened(dir.path());
    assert_eq!(keys(&weights), ["a", "x", "z"]);
    let unlisted =
        |key: &str| ReadWarning::UnlistedTensor { path: dir.join("a.safetensors"), key: key.into() };
    assert_eq!(weights.warnings, [unlisted("a"), unlisted("z")]);
}

#[test]
fn trailing_bytes_are_a_warning() {
    let dir = Dir::new().with("a.safetensors", [bytes(&["x"]), vec![0; 7]].concat());
    let path = dir.join("a.safetensors");
    assert_eq!(opened(&path).warnings, [ReadWarning::TrailingBytes { path, bytes: 7 }]);
}

#[test]
fn missing_shards_are_one_mistake() {
    let dir = Dir::new().with("a.safetensors", bytes(&["x"])).with_index(&[
        ("a.safetensors", &["x"]),
        ("b.safetensors", &["y"]),
        ("c.safetensors", &["z"]),
    ]);
    refused(dir.path(), BAD, "names `b.safetensors` and `c.safetensors`, which are missing");
}

#[test]
fn a_listed_shard_behind_a_dangling_link_is_a_bad_index() {
    let dir = Dir::new().with_index(&[("a.safetensors", &["x"])]);
    symlink("../blobs/abc", dir.join("a.safetensors")).unwrap();
    refused(dir.path(), BAD, "a link to `../blobs/abc`, which does not exist");
}

#[test]
fn an_index_that_lies_is_refused() {
    let dir = Dir::new().with("a.safetensors", bytes(&["x"])).with("b.safetensors", bytes(&["y"]));
    let dir = dir.with_index(&[("a.safetensors", &["x", "y"]), ("b.safetensors", &[])]);
    // Only named shards count: b is none here.
    refused(dir.path(), BAD, "puts `y` into `a.safetensors`, which does not have it");

    let dir = dir.with_index(&[("a.safetensors", &["y", "p", "q"]), ("b.safetensors", &["x", "r"])]);
    let reason =
        "puts `p` into `a.safetensors`, which does not have it; the same holds for `q`, `r`, `x` and `y`";
    let error = refused(dir.path(), BAD, reason);
    assert_eq!(error.path, dir.join("model.safetensors.index.json"));

    let dir = dir.with_index(&[("a.safetensors", &["y"]), ("b.safetensors", &["x"])]);
    let reason = "puts `x` into `b.safetensors`, which does not have it (`a.safetensors` does); the same holds for `y`";
    refused(dir.path(), BAD, reason);
}

#[test]
fn an_index_cannot_lead_out_of_its_directory() {
    for name in ["../a.safetensors", "/a.safetensors", "sub/a.safetensors", "..", "", "a\\b.safetensors"] {
        let dir = Dir::new().with_index(&[(name, &["x"])]);
        refused(dir.path(), BAD, &format!("names the shard `{name}`, which is not a plain file name"));
    }
    let dir = Dir::new().with_index(&[("model.bin", &["x"])]);
    refused(dir.path(), BAD, "names the shard `model.bin`, which is not a `.safetensors` file");
}

#[test]
fn an_index_must_be_one() {
    let refuse = |text: &str, reason: &str| {
        let dir =
            Dir::new().with("model.safetensors.index.json", text).with("model.safetensors", bytes(&["x"]));
        refused(dir.path(), BAD, reason);
    };
    refuse("", "not JSON: EOF while parsing a value at line 1 column 0");
    refuse("{\"weight_map\": {", "not JSON: EOF while parsing an object at line 1 column 16");
    refuse("{}", "has no `weight_map`");
    refuse("{\"weight_map\": null}", "has no `weight_map`");
    refuse(
        "[]",
        "not an index file: invalid type: sequence, expected an object with `weight_map` at line 1 column 0",
    );
    refuse(
        "{\"weight_map\": {\"x\": 1}}",
        "not an index file: invalid type: integer `1`, expected a string at line 1 column 22",
    );
}

#[test]
fn an_index_of_nothing_is_an_empty_checkpoint() {
    let dir = Dir::new().with("model.safetensors.index.json", "{\"weight_map\": {}}");
    assert!(opened(dir.path()).index.entries().is_empty());
}

#[test]
fn an_index_that_is_too_large_is_not_read() {
    let dir = Dir::new().with("model.safetensors.index.json", "{}");
    let index = fs::File::options().write(true).open(dir.join("model.safetensors.index.json")).unwrap();
    index.set_len(1 << 40).unwrap();
    let errors = Weights::open(dir.path()).unwrap_err();
    assert_eq!((errors[0].kind, errors[0].reason.as_str()), (BAD, "larger than 100 MB"));
}

#[test]
fn an_index_of_more_tensors_than_any_model_has_is_not_read() {
    let entries: Vec<String> = (0..=1_000_000).map(|n| format!("\"{n}\":\"a.safetensors\"")).collect();
    let refused = Listing::parse(&format!("{{\"weight_map\":{{{}}}}}", entries.join(","))).unwrap_err();
    assert!(refused.starts_with("not an index file: it lists more than 1000000 tensors"), "{refused}");
}

#[test]
fn the_same_tensor_in_two_files_is_refused() {
    let dir = Dir::new().with("a.safetensors", bytes(&["x", "y"])).with("b.safetensors", bytes(&["y", "z"]));
    refused(dir.path(), UNREADABLE, "tensor `y` is in both `a.safetensors` and `b.safetensors`");
    let dir = dir.with("b.safetensors", bytes(&["x", "y"]));
    let reason = "tensor `x` is in both `a.safetensors` and `b.safetensors` (and 1 more tensors)";
    refused(dir.path(), UNREADABLE, reason);
}

#[test]
fn every_broken_shard_is_named() {
    let dir = Dir::new()
        .with("a.safetensors", "")
        .with("b.safetensors", bytes(&["x"]))
        .with("c.safetensors", raw("{", 0));
    let errors = Weights::open(dir.path()).unwrap_err();
    let paths: Vec<_> = errors.iter().map(|error| error.path.clone()).collect();
    assert_eq!(paths, [dir.join("a.safetensors"), dir.join("c.safetensors")]);
}

#[test]
fn many_broken_shards_are_counted() {
    let names = (0..20).map(|n| format!("model-{n:02}.safetensors"));
    let dir = names.fold(Dir::new(), |dir, name| dir.with(&name, ""));
    let errors = Weights::open(dir.path()).unwrap_err();
    assert_eq!(errors.len(), 8);
    assert_eq!(errors[7].reason, "empty (0 bytes); 12 more files are refused");
}

#[test]
fn a_directory_without_weights_says_what_it_has() {
    let refuse = |names: &[&str], reason: &str| {
        let dir = names.iter().fold(Dir::new(), |dir, name| dir.with(name, "x"));
        refused(dir.path(), UNREADABLE, &format!("no safetensors weights in this directory{reason}"));
    };
    refuse(&[], "");
    refuse(&["model-q4.gguf", "config.json"], ": `model-q4.gguf` is GGUF");
    refuse(&["pytorch_model.bin"], ": `pytorch_model.bin` has another format");
    refuse(&["model.safetensors.incomplete"], ": `model.safetensors.incomplete` is an unfinished download");
    refuse(
        &["adapters.safetensors"],
        ": `adapters.safetensors` is an adapter or a second copy, which is ignored",
    );
}

#[test]
fn a_path_that_leads_nowhere_is_not_found() {
    let errors = Weights::open(Path::new("no/such/directory")).unwrap_err();
    assert_eq!(errors[0].kind, ReadErrorKind::NotFound);
}

proptest! {
    #[test]
    fn index_files_are_answered(text in r#"[{}\[\]":,a-b0 ]{0,40}"#) {
        let _ = Listing::parse(&text);
        let _ = Listing::parse(&format!(r#"{{"weight_map":{text}}}"#));
    }

    #[test]
    fn index_files_are_read_as_they_are_written(
        map in prop::collection::btree_map(r"\PC{0,8}", "[a-c]{1,2}\\.safetensors", 0..8),
    ) {
        let text = serde_json::json!({"weight_map": map}).to_string();
        let listing = Listing::parse(&text).unwrap();
        let read: Vec<_> = listing.tensors.iter().map(|(key, at)| (&**key, listing.shards[*at].as_str())).collect();
        let written: Vec<_> = map.iter().map(|(key, shard)| (key.as_str(), shard.as_str())).collect();
        prop_assert_eq!(read, written);
        prop_assert!(listing.shards.is_sorted());
    }
}
