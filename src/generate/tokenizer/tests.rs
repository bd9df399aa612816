//! Texts to tokens and back, and rejected files.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn fixture() -> Arc<Tokenizer> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/models/tiny-tales/base");
    Arc::new(Tokenizer::open(Path::new(dir)).expect("the fixture opens"))
}

/// The tokenizer of a directory with this `tokenizer.json`.
fn open(tokenizer: &str) -> Result<Arc<Tokenizer>, Error> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tokenizer.json"), tokenizer).unwrap();
    Tokenizer::open(dir.path()).map(Arc::new)
}

/// A converted `SentencePiece` tokenizer: words with space marks, and byte tokens.
fn sentencepiece() -> Arc<Tokenizer> {
    let mut vocab: Map<String, Value> = Map::new();
    for (id, token) in ["<s>", "▁the", "▁cat", "s"].into_iter().enumerate() {
        vocab.insert(token.to_owned(), id.into());
    }
    for byte in 0..=255 {
        vocab.insert(format!("<0x{byte:02X}>"), (4 + byte).into());
    }
    let file = json!({
        "version": "1.0", "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": null, "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "added_tokens": [{"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true}],
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<s>", "vocab": vocab, "merges": []},
    });
    open(&file.to_string()).expect("a valid tokenizer")
}

fn pieces(tokenizer: &Arc<Tokenizer>, start: Start, ids: &[u32]) -> Vec<String> {
    let mut stream = TextStream::new(Arc::clone(tokenizer), start);
    ids.iter().map(|id| stream.push(*id)).collect()
}

#[test]
fn encoding_and_decoding_round_trips() {
    let tokenizer = fixture();
    let ids = tokenizer.encode("One morning Anna", true).unwrap();
    assert_eq!(tokenizer.decode(&ids), "One morning Anna");
}

#[test]
fn a_character_is_returned_with_its_last_byte() {
    let byte = |byte: u32| 4 + byte;
    let ids = [1, byte(0xe6), byte(0x97), byte(0xa5), 3];
    assert_eq!(pieces(&sentencepiece(), Start::Continuation, &ids), [" the", "", "", "日", "s"]);
}

#[test]
fn invalid_bytes_are_replaced_and_a_trailing_partial_character_is_dropped() {
    let byte = |byte: u32| 4 + byte;
    assert_eq!(
        pieces(&sentencepiece(), Start::Continuation, &[byte(0xe6), 3, byte(0xff), byte(0xf0)]),
        ["", "\u{fffd}s", "\u{fffd}", ""]
    );
}

#[test]
fn answers_lose_the_leading_space_and_continuations_keep_it() {
    assert_eq!(pieces(&sentencepiece(), Start::Answer, &[0, 1, 2, 3]), ["", "the", " cat", "s"]);
    assert_eq!(pieces(&sentencepiece(), Start::Continuation, &[0, 1, 2, 3]), ["", " the", " cat", "s"]);
    let ids = fixture().encode(" the", false).unwrap();
    assert_eq!(pieces(&fixture(), Start::Answer, &ids).concat(), " the");
}

#[test]
fn special_and_unknown_tokens_have_no_text() {
    assert_eq!(pieces(&fixture(), Start::Continuation, &[0, 60_000]), ["", ""]);
    assert_eq!(fixture().bytes(0), b"<|endoftext|>");
}

#[test]
fn truncation_settings_of_the_file_are_ignored() {
    let text = "sssssss";
    assert_eq!(sentencepiece().encode(text, true).unwrap().len(), text.len());
}

#[test]
fn tokens_without_bytes_of_their_own_are_decoded_in_sequence() {
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "added_tokens": [], "decoder": null,
        "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2}},
    });
    let tokenizer = open(&file.to_string()).unwrap();
    assert_eq!(pieces(&tokenizer, Start::Continuation, &[1, 2, 1]), ["a", " b", " a"]);
}

#[test]
fn the_end_of_text_token_is_read_from_the_configuration() {
    assert_eq!(fixture().eos(), Some(0));
    assert_eq!(fixture().named("bos_token"), Some("<|endoftext|>"));
    assert_eq!(sentencepiece().eos(), None);
}

#[track_caller]
fn check_refused(tokenizer: &str, expected: &str) {
    let error = open(tokenizer).unwrap_err().to_string();
    assert!(error.contains("tokenizer.json") && error.contains(expected), "{error}");
}

#[test]
fn invalid_tokenizer_files_are_named() {
    check_refused("", "is empty");
    check_refused("{\"model\": {\"vocab\": {", "is not valid JSON");
    check_refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS");
    check_refused("<!DOCTYPE html>", "HTML");
    check_refused("[]", "is not a valid tokenizer");
    check_refused(
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}}",
        "is not a valid tokenizer",
    );
    let missing = Tokenizer::open(tempfile::tempdir().unwrap().path()).unwrap_err();
    assert!(missing.to_string().contains("tokenizer.json`: the tokenizer does not exist"), "{missing}");
    assert!(missing.help().is_some_and(|help| help.contains("--tokens")));
}

proptest! {
    #[test]
    fn pieces_add_up_to_the_text(text in "[a-z .é日😀\n]{0,30}") {
        let tokenizer = fixture();
        let ids = tokenizer.encode(&text, false).unwrap();
        // The small vocabulary lacks some bytes, so the library's decoder is the reference.
        let whole = tokenizer.inner.decode(&ids, true).unwrap();
        prop_assert_eq!(tokenizer.decode(&ids), whole);
    }
}
