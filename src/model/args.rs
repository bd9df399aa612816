//! Typed values of `config.json`, or an error that names the value.

use serde_json::{Map, Value};

use super::ConfigError;
use crate::checkpoint::{Family, ModelConfig, TextConfig};

/// The values of a text model's configuration; `null` counts as missing.
pub(super) struct Args<'c> {
    config: &'c ModelConfig,
    text: TextConfig<'c>,
}

impl<'c> Args<'c> {
    /// The text model's part of a configuration.
    pub(super) fn new(config: &'c ModelConfig) -> Self {
        Self { config, text: config.text() }
    }

    fn get(&self, name: &str) -> Option<&'c Value> {
        self.text.get(name)
    }

    /// Whether the text model's part has this field, `null` included.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.text.mentions(name)
    }

    /// A positive integer, if given.
    pub(super) fn size(&self, name: &str) -> Result<Option<usize>, ConfigError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let size = value.as_u64().and_then(|n| i32::try_from(n).ok()).and_then(|n| usize::try_from(n).ok());
        match size {
            Some(size) if size > 0 => Ok(Some(size)),
            _ => Err(wrong(name, value, "a positive integer")),
        }
    }

    /// A required positive integer.
    pub(super) fn required_size(&self, name: &str) -> Result<usize, ConfigError> {
        self.size(name)?.ok_or_else(|| missing(name))
    }

    /// A positive integer that the text model's part of the configuration may leave out, as in published vision-language
    /// models.
    pub(super) fn size_or(&self, name: &str, default: Option<u64>) -> Result<usize, ConfigError> {
        let default = default.filter(|_| self.text.is_nested()).and_then(|size| usize::try_from(size).ok());
        self.size(name)?.or(default).ok_or_else(|| missing(name))
    }

    /// A finite number, if given.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, ConfigError> {
        self.get(name).map(|value| finite(name, value)).transpose()
    }

    /// A boolean, or `default`.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, ConfigError> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| wrong(name, value, "true or false")),
        }
    }

    /// A string, if given.
    pub(super) fn word(&self, name: &str) -> Result<Option<&'c str>, ConfigError> {
        self.get(name).map(|value| value.as_str().ok_or_else(|| wrong(name, value, "a string"))).transpose()
    }

    /// A list of strings, if given.
    pub(super) fn words(&self, name: &str) -> Result<Option<Vec<&'c str>>, ConfigError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let words = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        words.map(Some).ok_or_else(|| wrong(name, value, "a list of strings"))
    }

    /// Query heads, key/value heads (by default as many) and head width (by default an equal share of `hidden`).
    pub(super) fn heads(&self, hidden: usize) -> Result<(usize, usize, usize), ConfigError> {
        let lifted = |value: Option<u64>, name: &str| match value {
            None => Ok(None),
            Some(n) => match i32::try_from(n).ok().and_then(|n| usize::try_from(n).ok()) {
                Some(n) if n > 0 => Ok(Some(n)),
                _ => Err(wrong(name, &n.into(), "a positive integer")),
            },
        };
        for name in ["num_attention_heads", "num_key_value_heads", "head_dim"] {
            self.size(name)?;
        }
        let heads = lifted(self.config.heads, "num_attention_heads")?;
        let heads = heads.ok_or_else(|| missing("num_attention_heads"))?;
        let kv_heads = lifted(self.config.kv_heads, "num_key_value_heads")?.unwrap_or(heads);
        if !heads.is_multiple_of(kv_heads) {
            return Err(ConfigError::UnevenHeads { heads, kv_heads });
        }
        let head_dim = match lifted(self.config.head_dim, "head_dim")? {
            Some(head_dim) => head_dim,
            None if hidden.is_multiple_of(heads) => hidden / heads,
            None => return Err(ConfigError::UndividedHidden { hidden, heads }),
        };
        if !head_dim.is_multiple_of(2) {
            return Err(ConfigError::OddHeadDim(head_dim));
        }
        Ok((heads, kv_heads, head_dim))
    }

    /// The whole configuration.
    pub(super) fn config(&self) -> &'c ModelConfig {
        self.config
    }

    /// The text model's type.
    pub(super) fn model_type(&self) -> &'c str {
        self.text.model_type()
    }

    /// The text model's family.
    pub(super) fn family(&self) -> &'static Family {
        self.config.family()
    }

    /// An object, if given.
    pub(super) fn object(&self, name: &str) -> Result<Option<&'c Map<String, Value>>, ConfigError> {
        self.get(name)
            .map(|value| value.as_object().ok_or_else(|| wrong(name, value, "an object")))
            .transpose()
    }

    /// A list of non-negative integers, if given.
    pub(super) fn numbers(&self, name: &str) -> Result<Option<Vec<u64>>, ConfigError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let numbers = value.as_array().and_then(|list| list.iter().map(Value::as_u64).collect());
        numbers.map(Some).ok_or_else(|| wrong(name, value, "a list of non-negative integers"))
    }

    /// A positive number, or `default`.
    pub(super) fn factor(&self, name: &str, default: f64) -> Result<f64, ConfigError> {
        positive(name, self.number(name)?.unwrap_or(default))
    }
}

/// The error for a required value that is absent.
pub(super) fn missing(name: &str) -> ConfigError {
    ConfigError::Missing(name.to_owned())
}

/// The error for a value that is not `wanted`.
pub(super) fn wrong(name: &str, value: &Value, wanted: &'static str) -> ConfigError {
    ConfigError::Wrong { name: name.to_owned(), value: value.clone(), wanted }
}

pub(super) fn finite(name: &str, value: &Value) -> Result<f64, ConfigError> {
    value.as_f64().filter(|number| number.is_finite()).ok_or_else(|| wrong(name, value, "a finite number"))
}

pub(super) fn positive(name: &str, value: f64) -> Result<f64, ConfigError> {
    if value > 0.0 { Ok(value) } else { Err(wrong(name, &value.into(), "a positive number")) }
}
