//! Converts the model's metadata of a GGUF to `config.json` and `generation_config.json`.

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::tensors::Bits;

/// A value of the metadata.
pub(super) fn get<'a>(metadata: &'a Map<String, Value>, key: &str) -> Result<&'a Value> {
    metadata.get(key).with_context(|| format!("the metadata lacks `{key}`"))
}

/// The sizes that the conversion of tensors depends on.
#[derive(Debug)]
pub(super) struct Sizes {
    heads: usize,
    kv_heads: usize,
}

impl Sizes {
    pub(super) fn read(metadata: &Map<String, Value>) -> Result<Self> {
        ensure!(get(metadata, "general.architecture")? == "llama", "the model is not a llama");
        let size = |key: &str| -> Result<usize> {
            let number = get(metadata, key)?.as_u64().with_context(|| format!("`{key}` is not a size"))?;
            Ok(usize::try_from(number)?)
        };
        Ok(Self {
            heads: size("llama.attention.head_count")?,
            kv_heads: size("llama.attention.head_count_kv")?,
        })
    }

    /// The heads of a module whose rows GGUF reorders.
    pub(super) fn heads_of(&self, module: &str) -> Option<usize> {
        if module.ends_with(".q_proj") {
            Some(self.heads)
        } else if module.ends_with(".k_proj") {
            Some(self.kv_heads)
        } else {
            None
        }
    }
}

/// `config.json`.
pub(super) fn config(metadata: &Map<String, Value>, bits: &Bits) -> Result<Value> {
    let get = |key: &str| get(metadata, key);
    let quantization = quantization(bits);
    Ok(json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": get("llama.embedding_length")?,
        "intermediate_size": get("llama.feed_forward_length")?,
        "num_hidden_layers": get("llama.block_count")?,
        "num_attention_heads": get("llama.attention.head_count")?,
        "num_key_value_heads": get("llama.attention.head_count_kv")?,
        "head_dim": get("llama.rope.dimension_count")?,
        "hidden_act": "silu",
        "attention_bias": false,
        "mlp_bias": false,
        "rms_norm_eps": get("llama.attention.layer_norm_rms_epsilon")?,
        "rope_theta": get("llama.rope.freq_base")?,
        "max_position_embeddings": get("llama.context_length")?,
        "vocab_size": get("llama.vocab_size")?,
        "tie_word_embeddings": !bits.contains_key("lm_head"),
        "bos_token_id": get("tokenizer.ggml.bos_token_id")?,
        "eos_token_id": get("tokenizer.ggml.eos_token_id")?,
        "pad_token_id": get("tokenizer.ggml.padding_token_id")?,
        "torch_dtype": "float16",
        "quantization": quantization,
        "quantization_config": quantization,
    }))
}

/// The most common width for all modules, and each module that differs by name.
fn quantization(bits: &Bits) -> Value {
    let settings = |bits: usize| json!({ "group_size": 32, "bits": bits, "mode": "affine" });
    let count = |width: usize| bits.values().filter(|other| **other == width).count();
    let common = bits.values().copied().max_by_key(|width| count(*width)).unwrap_or(4);
    let mut quantization = settings(common);
    for (module, width) in bits.iter().filter(|(_, width)| **width != common) {
        quantization[module] = settings(*width);
    }
    quantization
}

/// `generation_config.json`.
pub(super) fn generation(metadata: &Map<String, Value>) -> Result<Value> {
    Ok(json!({
        "bos_token_id": get(metadata, "tokenizer.ggml.bos_token_id")?,
        "eos_token_id": get(metadata, "tokenizer.ggml.eos_token_id")?,
        "pad_token_id": get(metadata, "tokenizer.ggml.padding_token_id")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_that_differs_is_named() {
        let bits = [("a", 4), ("b", 8), ("c", 4)].map(|(module, bits)| (module.to_owned(), bits));
        assert_eq!(
            quantization(&bits.into()),
            json!({
                "group_size": 32, "bits": 4, "mode": "affine",
                "b": { "group_size": 32, "bits": 8, "mode": "affine" },
            })
        );
    }
}
