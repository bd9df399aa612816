//! Converts the tokenizer's metadata of a GGUF to `tokenizer.json` and `tokenizer_config.json`.

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::metadata::get;

/// GGUF's type of control tokens, which are never text.
const CONTROL: u64 = 3;
/// GGUF's type of tokens that are matched before byte pairs are merged.
const USER_DEFINED: u64 = 4;

/// `tokenizer.json`: byte-level byte-pair encoding that never merges two digits.
pub(super) fn tokenizer(metadata: &Map<String, Value>) -> Result<Value> {
    ensure!(
        get(metadata, "tokenizer.ggml.model")? == "gpt2" && get(metadata, "tokenizer.ggml.pre")? == "smollm",
        "the tokenizer is not SmolLM's"
    );
    let tokens = list(metadata, "tokenizer.ggml.tokens")?;
    let types = list(metadata, "tokenizer.ggml.token_type")?;
    ensure!(tokens.len() == types.len(), "{} tokens have {} types", tokens.len(), types.len());
    let vocabulary = tokens
        .iter()
        .enumerate()
        .map(|(id, token)| Ok((token.as_str().context("a token is not a string")?.to_owned(), id.into())))
        .collect::<Result<Map<_, _>>>()?;
    let added: Vec<Value> = tokens
        .iter()
        .zip(types)
        .enumerate()
        .filter_map(|(id, (token, kind))| added_token(id, token, kind))
        .collect();
    let byte_level =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{ "type": "Digits", "individual_digits": true }, byte_level],
        },
        "post_processor": null,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": false,
            "vocab": vocabulary,
            "merges": get(metadata, "tokenizer.ggml.merges")?,
        },
    }))
}

fn added_token(id: usize, token: &Value, kind: &Value) -> Option<Value> {
    let kind = kind.as_u64().filter(|kind| [CONTROL, USER_DEFINED].contains(kind))?;
    Some(json!({
        "id": id,
        "content": token,
        "single_word": false,
        "lstrip": false,
        "rstrip": false,
        "normalized": false,
        "special": kind == CONTROL,
    }))
}

/// `tokenizer_config.json`: the special tokens by their role, and the chat template.
pub(super) fn tokenizer_config(metadata: &Map<String, Value>) -> Result<Value> {
    let tokens = list(metadata, "tokenizer.ggml.tokens")?;
    let token = |key: &str| -> Result<&Value> {
        let id = get(metadata, key)?.as_u64().and_then(|id| usize::try_from(id).ok());
        id.and_then(|id| tokens.get(id)).with_context(|| format!("`{key}` is not a token id"))
    };
    Ok(json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": token("tokenizer.ggml.bos_token_id")?,
        "eos_token": token("tokenizer.ggml.eos_token_id")?,
        "pad_token": token("tokenizer.ggml.padding_token_id")?,
        "unk_token": token("tokenizer.ggml.unknown_token_id")?,
        "add_bos_token": get(metadata, "tokenizer.ggml.add_bos_token")?,
        "add_prefix_space": get(metadata, "tokenizer.ggml.add_space_prefix")?,
        "clean_up_tokenization_spaces": false,
        "model_max_length": get(metadata, "llama.context_length")?,
        "chat_template": get(metadata, "tokenizer.chat_template")?,
    }))
}

fn list<'a>(metadata: &'a Map<String, Value>, key: &str) -> Result<&'a [Value]> {
    get(metadata, key)?.as_array().map(Vec::as_slice).with_context(|| format!("`{key}` is not a list"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Map<String, Value> {
        let entries = json!({
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "smollm",
            "tokenizer.ggml.tokens": ["<end>", "a", "b", "ab"],
            "tokenizer.ggml.token_type": [3, 1, 1, 1],
            "tokenizer.ggml.merges": ["a b"],
        });
        entries.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn control_tokens_are_special_and_the_rest_is_vocabulary() -> Result<()> {
        let tokenizer = tokenizer(&metadata())?;
        assert_eq!(tokenizer["model"]["vocab"], json!({ "<end>": 0, "a": 1, "b": 2, "ab": 3 }));
        assert_eq!(tokenizer["added_tokens"].as_array().map(Vec::len), Some(1));
        assert_eq!(tokenizer["added_tokens"][0]["content"], "<end>");
        assert_eq!(tokenizer["added_tokens"][0]["special"], true);
        Ok(())
    }

    #[test]
    fn another_tokenizer_is_refused() {
        let mut metadata = metadata();
        metadata.insert("tokenizer.ggml.pre".into(), "llama-bpe".into());
        assert!(tokenizer(&metadata).is_err());
    }
}
