//! The one place that knows which family answers to which `model_type`.

use super::{
    Model, gemma2, gemma3_text, granite, llama, mixtral, olmo2, phi3, qwen2, qwen3, qwen3_moe, smollm3,
};
use crate::checkpoint::{Key, ModelConfig};
use crate::diagnostic::{Code, Diagnostic};
use crate::weights::WeightMap;

/// Builds a model from its configuration and weights.
type Builder = fn(&ModelConfig, &mut WeightMap<'_>) -> Result<Box<dyn Model>, Diagnostic>;

/// Every known `model_type` of a text model.
const FAMILIES: [(&str, Builder); 21] = [
    ("gemma2", gemma2::build),
    ("gemma3_text", gemma3_text::build),
    ("granite", granite::build),
    ("llama", llama::build),
    ("mistral", llama::build),
    ("mixtral", mixtral::build),
    ("olmo2", olmo2::build),
    ("phi3", phi3::build),
    ("qwen2", qwen2::build),
    ("qwen3", qwen3::build),
    ("qwen3_moe", qwen3_moe::build),
    ("smollm3", smollm3::build),
    // Vision-language models: their text models, or where these have no type of their own.
    ("gemma3", gemma3_text::build),
    ("llava", llama::build),
    ("mistral3", llama::build),
    ("qwen2_vl", qwen2::build),
    ("qwen2_vl_text", qwen2::build),
    ("qwen2_5_vl", qwen2::build),
    ("qwen2_5_vl_text", qwen2::build),
    ("qwen3_vl", qwen3::build),
    ("qwen3_vl_text", qwen3::build),
];

/// Tensors that some writers leave in a checkpoint and no model reads.
const IGNORABLE: [&str; 2] = [".rotary_emb.inv_freq", ".attention.masked_bias"];

/// Builds the model that a configuration asks for, taking every tensor it needs; none may be left.
///
/// # Errors
/// `unsupported_model`, `tensor_missing`, `tensor_left_over`, or a configuration that disagrees with the tensors.
pub fn build(config: &ModelConfig, mut weights: WeightMap<'_>) -> Result<Box<dyn Model>, Diagnostic> {
    let wanted = config.text_model_type();
    let Some((_, builder)) = FAMILIES.iter().find(|(model_type, _)| *model_type == wanted) else {
        let message = match wanted {
            "" => "`config.json` has no `model_type`".to_owned(),
            other => format!("no model family answers to `model_type` `{other}`"),
        };
        let known: Vec<String> = FAMILIES.iter().map(|(model_type, _)| format!("`{model_type}`")).collect();
        let help = format!("known are {}; planning and exporting surgery work with any", known.join(", "));
        return Err(Diagnostic::new(Code::UnsupportedModel, message).help(help));
    };
    let model = builder(config, &mut weights)?;
    weights.close(|key: &Key| IGNORABLE.iter().any(|end| key.as_str().ends_with(end)))?;
    Ok(model)
}
