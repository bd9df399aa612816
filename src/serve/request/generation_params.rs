//! [`GenerationParams`]: the checked values of the common fields.

use std::hash::{BuildHasher, Hasher, RandomState};

use serde_json::Value;

use super::common::{CommonFields, ResponseFormat, Stop};
use super::unsupported::reject_unless_inert;
use crate::generate::{Defaults, Sampling};
use crate::serve::engine::LogitAdjustments;
use crate::serve::error::ApiError;

/// The checked values of [`CommonFields`], with the model's defaults filled in.
#[derive(Debug, Clone)]
pub(in crate::serve) struct GenerationParams {
    /// Maximum number of tokens if requested.
    pub(in crate::serve) max_tokens: Option<usize>,
    pub(in crate::serve) sampling: Sampling,
    pub(in crate::serve) adjustments: LogitAdjustments,
    /// Strings to stop before.
    pub(in crate::serve) stop: Vec<String>,
    /// Number of choices for each prompt, from 1.
    pub(in crate::serve) n: usize,
    pub(in crate::serve) stream: bool,
    /// Whether a stream ends with the usage.
    pub(in crate::serve) include_usage: bool,
    /// The JSON schema that the answer must match.
    pub(in crate::serve) schema: Option<Value>,
}

/// Maximum number of stop strings.
pub(in crate::serve) const MAX_STOP_STRINGS: usize = 16;

impl CommonFields {
    /// Checks the fields and fills in the model's defaults. `max_n` is the maximum of `n`.
    pub(in crate::serve) fn params(
        &self,
        defaults: &Defaults,
        max_n: usize,
    ) -> Result<GenerationParams, ApiError> {
        reject_unless_inert("store", self.store.as_ref(), &[Value::Bool(false)])?;
        let max_tokens = match (self.max_tokens, self.max_completion_tokens) {
            (Some(one), Some(other)) if one != other => {
                let message = "`max_tokens` and `max_completion_tokens` differ; set one of them";
                return Err(ApiError::invalid_field("max_tokens", message));
            }
            (one, other) => one.or(other),
        };
        let n = self.n.unwrap_or(1);
        if n == 0 || n > max_n {
            return Err(ApiError::invalid_field("n", format!("`n` is {n}; it must be from 1 to {max_n}")));
        }
        let stop = match &self.stop {
            None => Vec::new(),
            Some(Stop::One(one)) => vec![one.clone()],
            Some(Stop::Several(several)) => several.clone(),
        };
        if stop.len() > MAX_STOP_STRINGS {
            return Err(ApiError::invalid_field(
                "stop",
                format!("`stop` has more than {MAX_STOP_STRINGS} entries"),
            ));
        }
        if self.stream_options.is_some() && self.stream != Some(true) {
            return Err(ApiError::invalid_field(
                "stream_options",
                "`stream_options` requires `stream: true`",
            ));
        }
        Ok(GenerationParams {
            max_tokens,
            sampling: self.sampling(defaults)?,
            adjustments: LogitAdjustments {
                bias: self.bias()?,
                presence_penalty: number("presence_penalty", self.presence_penalty, -2.0, 2.0)?
                    .unwrap_or(0.0),
                frequency_penalty: number("frequency_penalty", self.frequency_penalty, -2.0, 2.0)?
                    .unwrap_or(0.0),
            },
            stop,
            n,
            stream: self.stream.unwrap_or(false),
            include_usage: self.stream_options.as_ref().and_then(|o| o.include_usage).unwrap_or(false),
            schema: match &self.response_format {
                None | Some(ResponseFormat::Text {}) => None,
                Some(ResponseFormat::JsonObject {}) => Some(any_object()),
                Some(ResponseFormat::JsonSchema { json_schema }) => {
                    Some(json_schema.schema.clone().map_or_else(any_object, Value::Object))
                }
            },
        })
    }

    fn sampling(&self, defaults: &Defaults) -> Result<Sampling, ApiError> {
        let defaults = defaults.sampling();
        Ok(Sampling {
            temperature: number("temperature", self.temperature, 0.0, 100.0)?.unwrap_or(defaults.temperature),
            top_k: self.top_k.unwrap_or(defaults.top_k),
            top_p: number("top_p", self.top_p, 0.0, 1.0)?.unwrap_or(defaults.top_p),
            min_p: number("min_p", self.min_p, 0.0, 1.0)?.unwrap_or(defaults.min_p),
            repetition_penalty: number("repetition_penalty", self.repetition_penalty, 0.01, 100.0)?
                .unwrap_or(defaults.repetition_penalty),
            seed: match &self.seed {
                None => RandomState::new().build_hasher().finish(),
                Some(seed) => seed.as_u64().or(seed.as_i64().map(i64::cast_unsigned)).ok_or_else(|| {
                    ApiError::invalid_field("seed", format!("`seed` is {seed}; it must be a 64-bit integer"))
                })?,
            },
            ..defaults
        })
    }

    fn bias(&self) -> Result<Vec<(u32, f32)>, ApiError> {
        let mut all = Vec::new();
        for (token, bias) in self.logit_bias.iter().flatten() {
            let id = token.parse().map_err(|_| {
                ApiError::invalid_field("logit_bias", format!("`{token}` in `logit_bias` is not a token id"))
            })?;
            all.extend(number("logit_bias", Some(*bias), -100.0, 100.0)?.map(|bias| (id, bias)));
        }
        Ok(all)
    }
}

/// A number in the range from `min` to `max`.
fn number(param: &str, value: Option<f64>, min: f64, max: f64) -> Result<Option<f32>, ApiError> {
    #[expect(clippy::cast_possible_truncation, reason = "sampling parameters are f32")]
    let narrow = |value: f64| value as f32;
    match value {
        Some(value) if !(min..=max).contains(&value) => Err(ApiError::invalid_field(
            param,
            format!("`{param}` is {value}; it must be from {min} to {max}"),
        )),
        value => Ok(value.map(narrow)),
    }
}

fn any_object() -> Value {
    serde_json::json!({"type": "object"})
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params(value: Value) -> Result<GenerationParams, ApiError> {
        let Value::Object(mut object) = value else { panic!("not an object") };
        let common = CommonFields::take(&mut object)?;
        assert!(object.is_empty(), "{object:?}");
        common.params(&Defaults::default(), 4)
    }

    #[track_caller]
    fn check_refused(value: Value, param: &str) {
        let error = params(value).unwrap_err();
        assert_eq!(error.body()["error"]["param"], param, "{error:?}");
    }

    #[test]
    fn fields_are_checked_and_defaults_filled_in() {
        let params =
            params(json!({"temperature": 0.5, "seed": -1, "stop": "x", "n": 2, "max_completion_tokens": 7,
            "logit_bias": {"5": -100}, "presence_penalty": 1, "stream": true, "top_k": null,
            "stream_options": {"include_usage": true}, "response_format": {"type": "json_object"}}))
            .unwrap();
        assert_eq!((params.sampling.temperature, params.sampling.seed, params.n), (0.5, u64::MAX, 2));
        assert_eq!((params.max_tokens, params.stop.as_slice()), (Some(7), &["x".to_owned()][..]));
        assert_eq!(
            params.adjustments,
            LogitAdjustments { bias: vec![(5, -100.0)], presence_penalty: 1.0, frequency_penalty: 0.0 }
        );
        assert!(params.stream && params.include_usage);
        assert_eq!(params.schema, Some(json!({"type": "object"})));
    }

    #[test]
    fn seeds_are_random_by_default() {
        assert_ne!(params(json!({})).unwrap().sampling.seed, params(json!({})).unwrap().sampling.seed);
    }

    #[test]
    fn invalid_values_are_rejected_by_name() {
        check_refused(json!({"temperature": -0.1}), "temperature");
        check_refused(json!({"top_p": 1.01}), "top_p");
        check_refused(json!({"n": 0}), "n");
        check_refused(json!({"n": 5}), "n");
        check_refused(json!({"seed": 1.5}), "seed");
        check_refused(json!({"stop": [1]}), "stop");
        check_refused(json!({"stop": vec!["a"; 17]}), "stop");
        check_refused(json!({"store": true}), "store");
        check_refused(json!({"max_tokens": 1, "max_completion_tokens": 2}), "max_tokens");
        check_refused(json!({"max_tokens": -1}), "max_tokens");
        check_refused(json!({"stream_options": {}}), "stream_options");
        check_refused(json!({"logit_bias": {"cat": 1}}), "logit_bias");
        check_refused(json!({"logit_bias": {"1": 101}}), "logit_bias");
        check_refused(json!({"response_format": {"type": "xml"}}), "response_format.type");
        assert!(params(json!({"store": false, "user": "me", "metadata": {}, "stop": []})).is_ok());
    }
}
