//! [`build`]: builds the model for a configuration from its weights.

use super::{
    Model, ModelError, gemma2, gemma3_text, granite, llama, mixtral, olmo2, phi3, qwen2, qwen3, qwen3_moe,
    smollm3,
};
use crate::checkpoint::{Architecture, Key, ModelConfig};
use crate::weights::WeightMap;

/// Builds a model from its configuration and weights.
type Builder = fn(&ModelConfig, &mut WeightMap<'_>) -> Result<Box<dyn Model>, ModelError>;

/// The builder of each architecture.
fn builder(architecture: Architecture) -> Builder {
    match architecture {
        Architecture::Gemma2 => gemma2::build,
        Architecture::Gemma3Text => gemma3_text::build,
        Architecture::Granite => granite::build,
        Architecture::Llama => llama::build,
        Architecture::Mixtral => mixtral::build,
        Architecture::Olmo2 => olmo2::build,
        Architecture::Phi3 => phi3::build,
        Architecture::Qwen2 => qwen2::build,
        Architecture::Qwen3 => qwen3::build,
        Architecture::Qwen3Moe => qwen3_moe::build,
        Architecture::Smollm3 => smollm3::build,
    }
}

/// Endings of tensors that some writers leave in a checkpoint and no model reads.
const IGNORABLE: [&str; 2] = [".rotary_emb.inv_freq", ".attention.masked_bias"];

/// Builds the model for a configuration. It takes every tensor it needs; none may be left.
///
/// # Errors
/// An unsupported family or configuration, or tensors that do not fit the configuration.
pub(crate) fn build(config: &ModelConfig, mut weights: WeightMap<'_>) -> Result<Box<dyn Model>, ModelError> {
    let Some(architecture) = config.family().architecture else {
        return Err(match config.text_model_type() {
            "" => ModelError::NoModelType,
            other => ModelError::UnsupportedType(other.to_owned()),
        });
    };
    let model = builder(architecture)(config, &mut weights)?;
    weights.close(|key: &Key| IGNORABLE.iter().any(|end| key.as_str().ends_with(end)))?;
    Ok(model)
}
