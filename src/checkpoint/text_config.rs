//! [`TextConfig`]: the text model's part of `config.json`, wherever a vision-language model keeps it. Planner and
//! models read it here.

use serde_json::{Map, Value};

/// The text model's part of a `config.json`, and the root around it. `null` counts as missing.
#[derive(Debug, Clone, Copy)]
pub struct TextConfig<'c> {
    root: &'c Map<String, Value>,
    part: Option<&'c Map<String, Value>>,
}

impl TextConfig<'static> {
    /// Where vision-language and multi-part models keep the text model's values.
    pub const PLACES: [&'static [&'static str]; 4] =
        [&["text_config"], &["llm_config"], &["language_config"], &["thinker_config", "text_config"]];
}

impl<'c> TextConfig<'c> {
    /// Finds the part in a whole `config.json`.
    #[must_use]
    pub fn of(root: &'c Map<String, Value>) -> Self {
        let parts = TextConfig::PLACES
            .iter()
            .filter_map(|place| place.iter().try_fold(root, |object, name| object.get(*name)?.as_object()));
        let first = parts.clone().next();
        Self { root, part: { parts }.find(|part| !part.is_empty()).or(first) }
    }

    /// Whether the text model has a part of its own. Else its values are those of the root.
    #[must_use]
    pub fn is_nested(self) -> bool {
        self.part.is_some()
    }

    /// The text model's `model_type`, or else the root's; empty when neither is given.
    #[must_use]
    pub fn model_type(self) -> &'c str {
        let of = |map: &'c Map<String, Value>| map.get("model_type")?.as_str();
        self.part.and_then(of).or_else(|| of(self.root)).unwrap_or_default()
    }

    /// A value that describes the text model: its own, or else the root's.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'c Value> {
        self.part.and_then(|part| present(part, name)).or_else(|| present(self.root, name))
    }

    /// A value that describes the whole checkpoint (ties, quantization, the heads that the planner counts): the
    /// root's, or else the text model's own.
    #[must_use]
    pub fn get_root_first(self, name: &str) -> Option<&'c Value> {
        present(self.root, name).or_else(|| present(self.part?, name))
    }

    /// Whether the text model's part has this field, `null` included.
    #[must_use]
    pub fn mentions(self, name: &str) -> bool {
        self.part.unwrap_or(self.root).contains_key(name)
    }
}

fn present<'c>(json: &'c Map<String, Value>, name: &str) -> Option<&'c Value> {
    json.get(name).filter(|value| !value.is_null())
}
