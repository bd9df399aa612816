//! [`Defaults`]: a model's default generation parameters, from `generation_config.json`.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::{Map, Value};

use super::error::Error;
use super::files::read_json;
use super::sampler::Sampling;
use super::tokenizer::Tokenizer;
use crate::checkpoint::TextConfig;

/// Maximum tokens of an answer if neither flag nor file sets it.
pub(super) const DEFAULT_MAX_TOKENS: usize = 512;
/// Maximum size of `generation_config.json` in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The field that names the end-of-text tokens.
const EOS: &str = "eos_token_id";

/// The fields of `generation_config.json`; all are absent if the file does not exist.
///
/// `do_sample: false` means temperature 0, and `do_sample: true` without a temperature means temperature 1, as in
/// transformers. `max_length` is ignored: published files use it for the context length.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Defaults {
    /// `max_new_tokens`.
    pub max_tokens: Option<usize>,
    /// `temperature`.
    pub temperature: Option<f32>,
    /// `top_k`.
    pub top_k: Option<usize>,
    /// `top_p`.
    pub top_p: Option<f32>,
    /// `min_p`.
    pub min_p: Option<f32>,
    /// `repetition_penalty`.
    pub repetition_penalty: Option<f32>,
    /// `eos_token_id`, one or several.
    pub eos: Vec<u32>,
}

impl Defaults {
    /// Reads the file of a model directory.
    ///
    /// # Errors
    /// When the file is not a JSON object or a field is invalid.
    pub(crate) fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("generation_config.json");
        let Some(json) = read_json(&path, MAX_FILE_BYTES)? else { return Ok(Self::default()) };
        Self::of(&json).map_err(|error| Error::file(&path, error.to_string()))
    }

    fn of(json: &Map<String, Value>) -> Result<Self, FieldError> {
        let any = f32::MAX;
        let mut defaults = Self {
            max_tokens: count(json, "max_new_tokens")?,
            temperature: number(json, "temperature", 0.0..=any)?,
            top_k: count(json, "top_k")?,
            top_p: number(json, "top_p", 0.0..=1.0)?,
            min_p: number(json, "min_p", 0.0..=1.0)?,
            repetition_penalty: number(json, "repetition_penalty", f32::MIN_POSITIVE..=any)?,
            eos: ids(json, EOS)?,
        };
        match json.get("do_sample") {
            Some(Value::Bool(false)) => defaults.temperature = Some(0.0),
            Some(Value::Bool(true)) => defaults.temperature = defaults.temperature.or(Some(1.0)),
            None | Some(Value::Null) => {}
            Some(value) => return Err(FieldError::new("do_sample", value, "true or false")),
        }
        Ok(defaults)
    }

    /// The sampling parameters of the file; absent ones are those of greedy decoding.
    #[must_use]
    pub(crate) fn sampling(&self) -> Sampling {
        let greedy = Sampling::default();
        Sampling {
            temperature: self.temperature.unwrap_or(greedy.temperature),
            top_k: self.top_k.unwrap_or(greedy.top_k),
            top_p: self.top_p.unwrap_or(greedy.top_p),
            min_p: self.min_p.unwrap_or(greedy.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(greedy.repetition_penalty),
            ..greedy
        }
    }

    /// The end-of-text tokens of `generation_config.json`, `config.json` (root and text model) and the tokenizer. Chat
    /// models end a turn and a document with different tokens, and list them in different files.
    #[must_use]
    pub(crate) fn eos_ids(&self, config: &Map<String, Value>, tokenizer: Option<&Tokenizer>) -> Vec<u32> {
        let text = TextConfig::of(config);
        let listed = [text.get(EOS), text.get_root_first(EOS)].into_iter().flatten();
        let mut all = self.eos.clone();
        // An invalid value in config.json is reported where that file is read.
        all.extend(listed.flat_map(|value| token_ids(value).unwrap_or_default()));
        all.extend(tokenizer.and_then(Tokenizer::eos));
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// An invalid field of `generation_config.json`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{field}` is {value}; it must be {expected}")]
struct FieldError {
    field: &'static str,
    value: Value,
    /// What the value must be, such as `a token id`.
    expected: Cow<'static, str>,
}

impl FieldError {
    fn new(field: &'static str, value: &Value, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { field, value: value.clone(), expected: expected.into() }
    }
}

fn present<'j>(json: &'j Map<String, Value>, field: &str) -> Option<&'j Value> {
    json.get(field).filter(|value| !value.is_null())
}

fn number(
    json: &Map<String, Value>,
    field: &'static str,
    range: RangeInclusive<f32>,
) -> Result<Option<f32>, FieldError> {
    let Some(value) = present(json, field) else { return Ok(None) };
    #[expect(clippy::cast_possible_truncation, reason = "sampling parameters are f32")]
    let parsed = value.as_f64().map(|number| number as f32).filter(|number| range.contains(number));
    parsed.map(Some).ok_or_else(|| {
        let expected: Cow<'static, str> = match (*range.start(), *range.end()) {
            (min, max) if max < f32::MAX => format!("a number from {min} to {max}").into(),
            (min, _) if min > 0.0 => "a number above 0".into(),
            _ => "a non-negative number".into(),
        };
        FieldError::new(field, value, expected)
    })
}

fn count(json: &Map<String, Value>, field: &'static str) -> Result<Option<usize>, FieldError> {
    let Some(value) = present(json, field) else { return Ok(None) };
    let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
    count.map(Some).ok_or_else(|| FieldError::new(field, value, "a non-negative integer"))
}

fn ids(json: &Map<String, Value>, field: &'static str) -> Result<Vec<u32>, FieldError> {
    let Some(value) = present(json, field) else { return Ok(Vec::new()) };
    token_ids(value).ok_or_else(|| FieldError::new(field, value, "a token id or a list of token ids"))
}

/// One token id or several.
fn token_ids(value: &Value) -> Option<Vec<u32>> {
    let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    list.iter().map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: &Value) -> Result<Defaults, FieldError> {
        Defaults::of(value.as_object().expect("an object"))
    }

    #[test]
    fn without_a_file_decoding_is_greedy() {
        let dir = tempfile::tempdir().unwrap();
        let defaults = Defaults::read(dir.path()).unwrap();
        assert_eq!(defaults, Defaults::default());
        assert_eq!(defaults.sampling(), Sampling::default());
    }

    #[test]
    fn null_counts_as_missing() {
        let defaults = of(&json!({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": null,
            "repetition_penalty": 1.05, "eos_token_id": [128_001, 128_009], "max_new_tokens": 64}))
        .unwrap();
        let sampling = defaults.sampling();
        assert_eq!((sampling.temperature, sampling.top_p, sampling.top_k), (0.6, 0.9, 0));
        assert_eq!((sampling.repetition_penalty, defaults.max_tokens), (1.05, Some(64)));
        assert_eq!(defaults.eos, [128_001, 128_009]);
    }

    #[test]
    fn do_sample_sets_the_temperature() {
        assert_eq!(of(&json!({"do_sample": true})).unwrap().temperature, Some(1.0));
        assert_eq!(of(&json!({"do_sample": false, "temperature": 0.7})).unwrap().temperature, Some(0.0));
        assert_eq!(of(&json!({"temperature": 0.7})).unwrap().temperature, Some(0.7));
    }

    #[track_caller]
    fn check_refused(value: &Value, expected: &str) {
        assert_eq!(of(value).unwrap_err().to_string(), expected);
    }

    #[test]
    fn invalid_values_are_named() {
        check_refused(
            &json!({"temperature": "hot"}),
            "`temperature` is \"hot\"; it must be a non-negative number",
        );
        check_refused(&json!({"temperature": -1}), "`temperature` is -1; it must be a non-negative number");
        check_refused(
            &json!({"temperature": 1e99}),
            "`temperature` is 1e+99; it must be a non-negative number",
        );
        check_refused(&json!({"top_p": 1.5}), "`top_p` is 1.5; it must be a number from 0 to 1");
        check_refused(&json!({"top_k": -1}), "`top_k` is -1; it must be a non-negative integer");
        check_refused(
            &json!({"repetition_penalty": 0}),
            "`repetition_penalty` is 0; it must be a number above 0",
        );
        check_refused(
            &json!({"eos_token_id": [1, -2]}),
            "`eos_token_id` is [1,-2]; it must be a token id or a list of token ids",
        );
        check_refused(&json!({"do_sample": "yes"}), "`do_sample` is \"yes\"; it must be true or false");
    }

    #[test]
    fn a_file_that_is_not_json_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("generation_config.json");
        for (bytes, reason) in [("", "is empty"), ("[]", "not a JSON object"), ("{\"top", "not valid JSON")] {
            std::fs::write(&file, bytes).unwrap();
            let error = Defaults::read(dir.path()).unwrap_err().to_string();
            assert!(error.contains("generation_config.json") && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn end_of_text_tokens_are_collected_from_every_file() {
        let defaults = Defaults { eos: vec![9, 7], ..Defaults::default() };
        let config = json!({"eos_token_id": 7, "text_config": {"eos_token_id": [3]}});
        assert_eq!(defaults.eos_ids(config.as_object().unwrap(), None), [3, 7, 9]);
        let config = json!({"eos_token_id": 1, "llm_config": {"eos_token_id": 2}});
        assert_eq!(defaults.eos_ids(config.as_object().unwrap(), None), [1, 2, 7, 9]);
    }
}
