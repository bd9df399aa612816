//! [`Common`]: the fields that both kinds of requests have; [`Wish`]: what they come to.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use serde::Deserialize;
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use crate::generate::{Defaults, Sampling};
use crate::serve::engine::Adjust;
use crate::serve::error::ApiError;

/// Fields that both kinds of requests have.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct Common {
    /// The model's id, as `/v1/models` lists it; the first of them if left out.
    pub(in crate::serve) model: Option<String>,
    /// How many tokens at most.
    max_tokens: Option<usize>,
    /// The newer name of `max_tokens`.
    max_completion_tokens: Option<usize>,
    /// Logits are divided by it; 0 always takes the likeliest token.
    #[schema(minimum = 0, maximum = 100)]
    temperature: Option<f64>,
    /// Only the likeliest tokens whose probabilities sum to so much.
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Only so many of the likeliest tokens; 0 is all.
    top_k: Option<usize>,
    /// Only tokens at least so many times as likely as the likeliest.
    #[schema(minimum = 0, maximum = 1)]
    min_p: Option<f64>,
    /// Logits of tokens seen lately are divided by it; 1 is off.
    #[schema(minimum = 0.01, maximum = 100)]
    repetition_penalty: Option<f64>,
    /// Taken from the logit of a token as often as the answer has it.
    #[schema(minimum = -2, maximum = 2)]
    frequency_penalty: Option<f64>,
    /// Taken from the logits of all tokens that the answer has.
    #[schema(minimum = -2, maximum = 2)]
    presence_penalty: Option<f64>,
    /// The same seed gives the same text. Answer i of several has seed + i.
    #[schema(value_type = Option<i64>)]
    seed: Option<Number>,
    /// Texts to stop before.
    stop: Option<Stop>,
    /// How many answers.
    #[schema(minimum = 1)]
    n: Option<usize>,
    /// Whether to send the answer as it is made, as server-sent events.
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    /// Added to the logits of tokens, by id.
    #[schema(value_type = Option<BTreeMap<String, f64>>)]
    logit_bias: Option<BTreeMap<String, f64>>,
    response_format: Option<ResponseFormat>,
    // Without any effect on the answer.
    #[expect(dead_code, reason = "accepted without any effect")]
    user: Option<String>,
    #[schema(value_type = Option<Object>)]
    #[expect(dead_code, reason = "accepted without any effect")]
    metadata: Option<Map<String, Value>>,
    #[expect(dead_code, reason = "accepted without any effect")]
    service_tier: Option<String>,
    #[expect(dead_code, reason = "accepted without any effect")]
    safety_identifier: Option<String>,
    #[expect(dead_code, reason = "accepted without any effect")]
    prompt_cache_key: Option<String>,
    #[expect(dead_code, reason = "accepted without any effect")]
    prompt_cache_retention: Option<String>,
    // Known, and not supported.
    #[schema(value_type = Option<bool>)]
    store: Option<Value>,
}

/// `stop`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
enum Stop {
    One(String),
    Several(Vec<String>),
}

/// `stream_options`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StreamOptions {
    /// Whether a last event tells the usage.
    include_usage: Option<bool>,
    /// Without any effect.
    #[expect(dead_code, reason = "accepted without any effect")]
    include_obfuscation: Option<bool>,
}

/// `response_format`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum ResponseFormat {
    /// Anything.
    Text {},
    /// A JSON object.
    JsonObject {},
    /// JSON that a schema describes.
    JsonSchema { json_schema: NamedSchema },
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NamedSchema {
    #[expect(dead_code, reason = "a name for people")]
    name: Option<String>,
    #[expect(dead_code, reason = "a text for people")]
    description: Option<String>,
    /// The schema; any object if left out.
    #[schema(value_type = Option<Object>)]
    schema: Option<Map<String, Value>>,
    #[expect(dead_code, reason = "a schema is always held to")]
    strict: Option<bool>,
}

/// What the common fields come to.
#[derive(Debug, Clone)]
pub(in crate::serve) struct Wish {
    pub(in crate::serve) max_tokens: Option<usize>,
    pub(in crate::serve) sampling: Sampling,
    pub(in crate::serve) adjust: Adjust,
    pub(in crate::serve) stop: Vec<String>,
    pub(in crate::serve) n: usize,
    pub(in crate::serve) stream: bool,
    pub(in crate::serve) usage: bool,
    /// A JSON schema to hold the answer to.
    pub(in crate::serve) schema: Option<Value>,
}

/// How many stop strings there may be.
pub(in crate::serve) const STOPS: usize = 16;

impl Common {
    const FIELDS: [&'static str; 24] = [
        "model",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "repetition_penalty",
        "frequency_penalty",
        "presence_penalty",
        "seed",
        "stop",
        "n",
        "stream",
        "stream_options",
        "logit_bias",
        "response_format",
        "user",
        "metadata",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "store",
    ];

    /// Takes the common fields out of a request.
    pub(in crate::serve) fn take(object: &mut Map<String, Value>) -> Result<Self, ApiError> {
        let fields = Self::FIELDS.iter().filter_map(|name| object.remove_entry(*name)).collect();
        super::strict(fields)
    }

    /// What they come to, over what the model's authors advise; at most `most` answers.
    pub(in crate::serve) fn wish(&self, defaults: &Defaults, most: usize) -> Result<Wish, ApiError> {
        refuse_unless("store", self.store.as_ref(), &[Value::Bool(false)])?;
        let max_tokens = match (self.max_tokens, self.max_completion_tokens) {
            (Some(one), Some(other)) if one != other => {
                let message =
                    "`max_tokens` and `max_completion_tokens` are two names of the same, and differ";
                return Err(ApiError::field("max_tokens", message));
            }
            (one, other) => one.or(other),
        };
        let n = self.n.unwrap_or(1);
        if n == 0 || n > most {
            return Err(ApiError::field("n", format!("`n` is {n}, not a number from 1 to {most}")));
        }
        let stop = match &self.stop {
            None => Vec::new(),
            Some(Stop::One(one)) => vec![one.clone()],
            Some(Stop::Several(several)) => several.clone(),
        };
        if stop.len() > STOPS {
            return Err(ApiError::field("stop", format!("`stop` has more than {STOPS} entries")));
        }
        if self.stream_options.is_some() && self.stream != Some(true) {
            return Err(ApiError::field("stream_options", "`stream_options` needs `stream: true`"));
        }
        Ok(Wish {
            max_tokens,
            sampling: self.sampling(defaults)?,
            adjust: Adjust {
                bias: self.bias()?,
                presence: number("presence_penalty", self.presence_penalty, -2.0, 2.0)?.unwrap_or(0.0),
                frequency: number("frequency_penalty", self.frequency_penalty, -2.0, 2.0)?.unwrap_or(0.0),
            },
            stop,
            n,
            stream: self.stream.unwrap_or(false),
            usage: self.stream_options.as_ref().and_then(|o| o.include_usage).unwrap_or(false),
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
        let advised = defaults.sampling();
        Ok(Sampling {
            temperature: number("temperature", self.temperature, 0.0, 100.0)?.unwrap_or(advised.temperature),
            top_k: self.top_k.unwrap_or(advised.top_k),
            top_p: number("top_p", self.top_p, 0.0, 1.0)?.unwrap_or(advised.top_p),
            min_p: number("min_p", self.min_p, 0.0, 1.0)?.unwrap_or(advised.min_p),
            repetition_penalty: number("repetition_penalty", self.repetition_penalty, 0.01, 100.0)?
                .unwrap_or(advised.repetition_penalty),
            seed: match &self.seed {
                None => RandomState::new().build_hasher().finish(),
                Some(seed) => seed.as_u64().or(seed.as_i64().map(i64::cast_unsigned)).ok_or_else(|| {
                    ApiError::field("seed", format!("`seed` is {seed}, not a whole number of 64 bits"))
                })?,
            },
            ..advised
        })
    }

    fn bias(&self) -> Result<Vec<(u32, f32)>, ApiError> {
        let mut all = Vec::new();
        for (token, bias) in self.logit_bias.iter().flatten() {
            let id = token.parse().map_err(|_| {
                ApiError::field("logit_bias", format!("`logit_bias` names `{token}`, not a token id"))
            })?;
            all.extend(number("logit_bias", Some(*bias), -100.0, 100.0)?.map(|bias| (id, bias)));
        }
        Ok(all)
    }
}

/// A number within its range.
fn number(param: &str, value: Option<f64>, from: f64, to: f64) -> Result<Option<f32>, ApiError> {
    #[expect(clippy::cast_possible_truncation, reason = "sampling parameters are f32")]
    let narrow = |value: f64| value as f32;
    match value {
        Some(value) if !(from..=to).contains(&value) => {
            Err(ApiError::field(param, format!("`{param}` is {value}, not a number from {from} to {to}")))
        }
        value => Ok(value.map(narrow)),
    }
}

/// Refuses a field that is known but not supported, unless its value asks for nothing that matters.
pub(super) fn refuse_unless(param: &str, value: Option<&Value>, inert: &[Value]) -> Result<(), ApiError> {
    match value {
        Some(value) if !value.is_null() && !inert.contains(value) => {
            Err(ApiError::field(param, format!("`{param}` is not supported at this value")))
        }
        _ => Ok(()),
    }
}

fn any_object() -> Value {
    serde_json::json!({"type": "object"})
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wish(value: Value) -> Result<Wish, ApiError> {
        let Value::Object(mut object) = value else { panic!("not an object") };
        let common = Common::take(&mut object)?;
        assert!(object.is_empty(), "{object:?}");
        common.wish(&Defaults::default(), 4)
    }

    #[track_caller]
    fn check_refused(value: Value, param: &str) {
        let error = wish(value).unwrap_err();
        assert_eq!(error.body()["error"]["param"], param, "{error:?}");
    }

    #[test]
    fn every_field_is_common_that_the_type_has() {
        // A field that is missing in the list would be unknown to everybody.
        let message = serde_json::from_value::<Common>(json!({"?": 1})).unwrap_err().to_string();
        let known: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
        assert_eq!(known, Common::FIELDS);
    }

    #[test]
    fn fields_come_to_a_wish() {
        let wish =
            wish(json!({"temperature": 0.5, "seed": -1, "stop": "x", "n": 2, "max_completion_tokens": 7,
            "logit_bias": {"5": -100}, "presence_penalty": 1, "stream": true, "top_k": null,
            "stream_options": {"include_usage": true}, "response_format": {"type": "json_object"}}))
            .unwrap();
        assert_eq!((wish.sampling.temperature, wish.sampling.seed, wish.n), (0.5, u64::MAX, 2));
        assert_eq!((wish.max_tokens, wish.stop.as_slice()), (Some(7), &["x".to_owned()][..]));
        assert_eq!(wish.adjust, Adjust { bias: vec![(5, -100.0)], presence: 1.0, frequency: 0.0 });
        assert!(wish.stream && wish.usage);
        assert_eq!(wish.schema, Some(json!({"type": "object"})));
    }

    #[test]
    fn seeds_differ_where_none_is_given() {
        assert_ne!(wish(json!({})).unwrap().sampling.seed, wish(json!({})).unwrap().sampling.seed);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
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
        assert!(wish(json!({"store": false, "user": "me", "metadata": {}, "stop": []})).is_ok());
    }
}
