//! [`ModelConfig`]: a parsed `config.json`.

use std::path::Path;

use serde_json::{Map, Value};

use super::file::read_text;
use super::json::{Distinct, without_non_finite};
use super::{Family, Quantization, ReadError, TextConfig};

/// Maximum size of `config.json` in bytes. One with a `quantization` entry for each of 44,544 experts has 5 MB.
const MAX_BYTES: u64 = 16_000_000;

/// Maximum number of values in `config.json`: a value takes many times more space in memory than in the file.
const MAX_VALUES: usize = 500_000;

/// `config.json`, with the values that planning needs lifted out of the places families keep them in.
///
/// `null` counts as missing, and then the family's default applies. A count that is not a positive integer is neither used
/// nor replaced by the default: planning does without it, and the model is refused.
#[derive(Debug, Clone, Default)]
pub struct ModelConfig {
    /// The whole object.
    pub json: Map<String, Value>,
    /// `model_type` of the root, empty when absent.
    pub model_type: String,
    /// Query heads (root, `text_config`, `llm_config`, `language_config`, `thinker_config.text_config`, or the model
    /// type's default).
    pub heads: Option<u64>,
    /// Key/value heads.
    pub kv_heads: Option<u64>,
    /// `head_dim` where it is explicit, or fixed by the model type.
    pub head_dim: Option<u64>,
    /// `hidden_size`.
    pub hidden_size: Option<u64>,
    /// `intermediate_size`.
    pub intermediate_size: Option<u64>,
    /// `tie_word_embeddings` of root or text config; `None` when absent.
    pub tied_embeddings: Option<bool>,
    /// Whether there is a `vision_config`.
    pub is_vision_language: bool,
    /// `quantization`, else `quantization_config`.
    pub quantization: Option<Quantization>,
}

impl ModelConfig {
    /// Reads a `config.json`.
    ///
    /// # Errors
    /// An I/O error, or a file that is not a JSON object.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let help = "a model directory needs the `config.json` that the model was published with";
        let text = read_text(path, MAX_BYTES).map_err(|error| match error.help {
            None => error.help(help),
            Some(_) => error,
        })?;
        Self::parse(&text).map_err(|reason| ReadError::unreadable(path, reason).help(help))
    }

    /// Parses the text of a `config.json`.
    ///
    /// # Errors
    /// A lowercase fragment that says why it is not a JSON object.
    pub fn parse(text: &str) -> Result<Self, String> {
        // Values are separated by commas. Commas inside strings are few compared to the limit.
        if memchr::memchr_iter(b',', text.as_bytes()).nth(MAX_VALUES).is_some() {
            return Err(format!("holds more than {MAX_VALUES} values, which no model's configuration does"));
        }
        let read = |text: &str| serde_json::from_str(text).map(|Distinct(value)| value);
        let read = match read(text) {
            // Python writes these. They do no harm where no number is needed.
            Err(error) if text.contains("NaN") || text.contains("Infinity") => {
                read(&without_non_finite(text)).map_err(|_| error)
            }
            read => read,
        };
        match read {
            Ok(Value::Object(json)) => Ok(Self::from_json(json)),
            Ok(Value::Array(_)) => Err("a JSON list, not an object".into()),
            Ok(_) => Err("a JSON value, not an object".into()),
            Err(_) if text.trim().is_empty() => Err("empty".into()),
            Err(error) if error.is_data() => Err(error.to_string()),
            Err(error) => Err(format!("not JSON: {error}")),
        }
    }

    /// Takes the values out of a parsed `config.json`.
    #[must_use]
    pub fn from_json(json: Map<String, Value>) -> Self {
        let mut config = Self { json, ..Self::default() };
        config.model_type =
            config.json.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let defaults = config.family().defaults;
        config.heads = config.count("num_attention_heads", defaults.heads);
        // Before grouped-query attention every head had its own keys and values.
        config.kv_heads = config.count("num_key_value_heads", defaults.kv_heads.or(config.heads));
        config.head_dim = config.count("head_dim", defaults.head_dim);
        config.hidden_size = config.count("hidden_size", defaults.hidden_size);
        config.intermediate_size = config.count("intermediate_size", defaults.intermediate_size);
        config.tied_embeddings = config.value("tie_word_embeddings").and_then(Value::as_bool);
        config.is_vision_language = config.json.get("vision_config").is_some_and(Value::is_object);
        config.quantization = ["quantization", "quantization_config"]
            .into_iter()
            .find_map(|name| config.value(name)?.as_object())
            .map(Quantization::from_json);
        config
    }

    /// The text model's part.
    #[must_use]
    pub fn text(&self) -> TextConfig<'_> {
        TextConfig::of(&self.json)
    }

    /// The model type of the text model: `text_config.model_type` and its like, else the root's.
    #[must_use]
    pub fn text_model_type(&self) -> &str {
        self.text().model_type()
    }

    /// The family of the text model.
    #[must_use]
    pub fn family(&self) -> &'static Family {
        Family::of(self.text_model_type())
    }

    /// A value of the root, or else of the text model's own part.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.text().get_root_first(name)
    }

    /// A count or size: [`value`](Self::value) where it is a positive whole number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name).and_then(Value::as_u64).filter(|&number| number > 0)
    }

    fn count(&self, name: &str, default: Option<u64>) -> Option<u64> {
        if self.value(name).is_some() { self.number(name) } else { default }
    }
}

#[cfg(test)]
mod tests;
