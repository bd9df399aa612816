//! Restores a tied `lm_head`, so that the planner sees the keys that the loader will see.

use super::{Key, ModelConfig, Origin, TensorIndex, TensorInfo};

const HEAD: &str = "lm_head.";
const EMBEDDING: &str = "model.embed_tokens.";

/// Adds `lm_head.*` with [`Origin::Tied`] where a text model ties it and does not store it.
///
/// Vision-language checkpoints keep their stored keys: the loader ties the head after surgery.
#[must_use]
pub(crate) fn sanitize(index: TensorIndex, config: &ModelConfig) -> TensorIndex {
    let stored = index.position("lm_head.weight").is_some();
    if stored || config.is_vision_language || config.tied_embeddings == Some(false) {
        return index;
    }
    let restored: Vec<(Key, TensorInfo)> = index.entries()[index.with_prefix(EMBEDDING)]
        .iter()
        .filter_map(|(key, info)| {
            let head = format!("{HEAD}{}", key.as_str().strip_prefix(EMBEDDING)?);
            let origin = Origin::Tied(key.clone());
            index
                .position(&head)
                .is_none()
                .then(|| (Key::from(&*head), TensorInfo { origin, ..info.clone() }))
        })
        .collect();
    if restored.is_empty() {
        return index;
    }
    TensorIndex::new(index.into_entries().into_iter().chain(restored).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{Dtype, Key, ModelConfig, Origin, TensorIndex, TensorInfo};
    use super::sanitize;

    #[track_caller]
    fn check(keys: &[&str], config: &ModelConfig, restored: &[&str]) {
        let info = || TensorInfo {
            dtype: Dtype::F16,
            shape: vec![4, 2],
            origin: Origin::Stored { shard: 0, range: 0..16 },
        };
        let index = TensorIndex::new(keys.iter().map(|key| (Key::from(*key), info())).collect());
        let after = sanitize(index, config);
        let mut tied: Vec<String> = Vec::new();
        for (key, info) in after.entries() {
            if let Origin::Tied(target) = &info.origin {
                assert_eq!((info.dtype, &*info.shape), (Dtype::F16, &[4, 2][..]));
                assert!(after.get(target.as_str()).is_some());
                tied.push(format!("{key} = {target}"));
            }
        }
        assert_eq!(tied, restored);
        assert_eq!(after.entries().len(), keys.len() + restored.len());
        assert!(after.entries().is_sorted_by_key(|(key, _)| key));
    }

    const EMBEDDING: &str = "model.embed_tokens.weight";

    #[test]
    fn a_tied_head_is_restored_with_all_its_members() {
        check(
            &[EMBEDDING, "model.norm.weight"],
            &ModelConfig::default(),
            &["lm_head.weight = model.embed_tokens.weight"],
        );
        check(
            &["model.embed_tokens.biases", "model.embed_tokens.scales", EMBEDDING, "z"],
            &ModelConfig { tied_embeddings: Some(true), ..ModelConfig::default() },
            &[
                "lm_head.biases = model.embed_tokens.biases",
                "lm_head.scales = model.embed_tokens.scales",
                "lm_head.weight = model.embed_tokens.weight",
            ],
        );
    }

    #[test]
    fn a_stored_head_is_used_even_in_a_tied_model() {
        let tied = ModelConfig { tied_embeddings: Some(true), ..ModelConfig::default() };
        check(&[EMBEDDING, "lm_head.weight"], &tied, &[]);
    }

    #[test]
    fn an_untied_model_keeps_its_keys() {
        check(&[EMBEDDING], &ModelConfig { tied_embeddings: Some(false), ..ModelConfig::default() }, &[]);
    }

    #[test]
    fn a_vision_language_checkpoint_keeps_its_raw_keys() {
        check(&[EMBEDDING], &ModelConfig { is_vision_language: true, ..ModelConfig::default() }, &[]);
    }
}
