//! The text model of a vision-language checkpoint: after surgery its tensors get the names that families use.

use std::collections::BTreeMap;

use super::{WeightMap, WeightsError};
use crate::checkpoint::{Key, ModelConfig};

impl WeightMap<'_> {
    /// The tensors of the text model under its own names; those of other towers are dropped unread. A text model without a
    /// head is tied to its embedding. Other checkpoints are unchanged.
    ///
    /// # Errors
    /// Two tensors with the same name.
    pub(crate) fn text_model(mut self, config: &ModelConfig) -> Result<Self, WeightsError> {
        if !config.is_vision_language {
            return Ok(self);
        }
        for (key, (array, bytes)) in std::mem::take(&mut self.tensors) {
            let Some(name) = config.text_key(&key) else {
                self.progress.done += bytes;
                continue;
            };
            let name = Key::from(&*name);
            if let Some(other) = self.stored_as.insert(name.clone(), key.clone()) {
                return Err(WeightsError::SameTensor { first: other, second: key });
            }
            self.tensors.insert(name, (array, bytes));
        }
        if !self.contains("lm_head.weight") && config.tied_embeddings != Some(false) {
            self.tie_head();
        }
        Ok(self)
    }

    fn tie_head(&mut self) {
        const EMBEDDING: &str = "model.embed_tokens.";
        let members: BTreeMap<Key, Key> = self
            .tensors
            .keys()
            .filter_map(|key| {
                let member = key.as_str().strip_prefix(EMBEDDING)?;
                Some((Key::from(&*format!("lm_head.{member}")), key.clone()))
            })
            .collect();
        for (head, source) in members {
            if let Some((array, _)) = self.tensors.get(&source) {
                self.tensors.insert(head.clone(), (array.clone(), 0));
                self.ties.insert(head, source);
            }
        }
    }

    /// The name that a tensor has in the checkpoint.
    pub(super) fn stored_name<'k>(&'k self, key: &'k str) -> &'k str {
        self.stored_as.get(key).map_or(key, Key::as_str)
    }
}
