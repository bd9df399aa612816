//! Lowers a parsed request to jobs for the engine: renders and encodes prompts, checks limits, compiles schemas. Runs
//! no model.

use serde_json::{Map, Value};

use super::app_state::AppState;
use super::endpoint::Endpoint;
use super::engine::ChoiceJob;
use super::error::ApiError;
use super::guide::Guide;
use super::request::{ChatRequest, CommonFields, CompletionRequest, GenerationParams, Prompt, parse_strict};
use super::tool_calls::template_uses_format;
use crate::generate::{Limits, Request, Start};

/// A request that is ready for the engine.
pub(super) struct LoweredRequest {
    pub(super) endpoint: Endpoint,
    /// Index of the model.
    pub(super) model: usize,
    pub(super) stream: bool,
    /// Whether a stream ends with the usage.
    pub(super) include_usage: bool,
    /// Requests log-probabilities, with this many alternatives per token.
    pub(super) logprobs: Option<usize>,
    /// Whether tool calls are separated from the text.
    pub(super) parse_tool_calls: bool,
    /// Number of answers to each prompt.
    pub(super) n: usize,
    pub(super) prompts: Vec<LoweredPrompt>,
}

/// A prompt and its `n` answers.
pub(super) struct LoweredPrompt {
    pub(super) ids: Vec<u32>,
    /// The prompt's text if the answer begins with it.
    pub(super) echo: Option<String>,
    pub(super) choices: Vec<ChoiceJob>,
}

/// A prompt as token ids.
struct EncodedPrompt {
    ids: Vec<u32>,
    /// The prompt's text if the answer begins with it.
    echo: Option<String>,
}

/// Lowers a request to `/v1/chat/completions`.
pub(super) fn lower_chat(app: &AppState, mut object: Map<String, Value>) -> Result<LoweredRequest, ApiError> {
    let common = CommonFields::take(&mut object)?;
    let (model, _) = app.model(common.model.as_deref())?;
    let request: ChatRequest = parse_strict(object)?;
    request.check_unsupported()?;
    let params = common.params(&app.text_pipeline.defaults, app.settings.max_batch)?;
    if params.max_tokens == Some(0) {
        return Err(ApiError::invalid_field("max_tokens", "`max_tokens` is 0; it must be at least 1"));
    }
    let logprobs = request.logprobs()?;
    let (template, inputs) = (app.text_pipeline.template()?, request.template_inputs()?);
    let prompt = template.render(&request.messages()?, &inputs)?;
    // A JSON schema excludes tool calls.
    let parse_tool_calls =
        inputs.tools.is_some() && params.schema.is_none() && template_uses_format(template);
    let ids = app.text_pipeline.tokenizer.encode(&prompt, false)?;
    let lowering = Lowering::new(app, &params, Start::Answer, logprobs, "messages")?;
    let prompts = lowering.prompts(vec![EncodedPrompt { ids, echo: None }])?;
    let GenerationParams { n, stream, include_usage, .. } = params;
    let endpoint = Endpoint::Chat;
    Ok(LoweredRequest { endpoint, model, stream, include_usage, logprobs, parse_tool_calls, n, prompts })
}

/// Lowers a request to `/v1/completions`.
pub(super) fn lower_completion(
    app: &AppState,
    mut object: Map<String, Value>,
) -> Result<LoweredRequest, ApiError> {
    let common = CommonFields::take(&mut object)?;
    let (model, _) = app.model(common.model.as_deref())?;
    let request: CompletionRequest = parse_strict(object)?;
    let params = common.params(&app.text_pipeline.defaults, app.settings.max_batch)?;
    request.check_unsupported(params.n)?;
    let logprobs = request.logprobs()?;
    let prompts = encode_prompts(app, &request)?;
    let lowering = Lowering::new(app, &params, Start::Continuation, logprobs, "prompt")?;
    let prompts = lowering.prompts(prompts)?;
    let GenerationParams { n, stream, include_usage, .. } = params;
    let (endpoint, parse_tool_calls) = (Endpoint::Completion, false);
    Ok(LoweredRequest { endpoint, model, stream, include_usage, logprobs, parse_tool_calls, n, prompts })
}

/// Encodes the prompts of a completion.
fn encode_prompts(app: &AppState, request: &CompletionRequest) -> Result<Vec<EncodedPrompt>, ApiError> {
    let tokenizer = &app.text_pipeline.tokenizer;
    let from_text = |text: &String| {
        let ids = tokenizer.encode(text, true)?;
        Ok(EncodedPrompt { ids, echo: request.echo().then(|| text.clone()) })
    };
    let from_ids = |ids: &Vec<u32>| EncodedPrompt {
        ids: ids.clone(),
        echo: request.echo().then(|| tokenizer.decode(ids)),
    };
    let prompts: Vec<_> = match &request.prompt {
        Prompt::Text(text) => vec![from_text(text)?],
        Prompt::Texts(texts) => texts.iter().map(from_text).collect::<Result<_, ApiError>>()?,
        Prompt::Tokens(ids) if ids.is_empty() => Vec::new(),
        Prompt::Tokens(ids) => vec![from_ids(ids)],
        Prompt::TokenLists(lists) => lists.iter().map(from_ids).collect(),
    };
    if prompts.is_empty() {
        return Err(ApiError::invalid_field("prompt", "`prompt` is empty"));
    }
    Ok(prompts)
}

/// What all prompts of a request are lowered with.
struct Lowering<'a> {
    app: &'a AppState,
    params: &'a GenerationParams,
    start: Start,
    logprobs: Option<usize>,
    guide: Option<Guide>,
    /// The field to which prompt errors refer.
    prompt_field: &'static str,
}

impl<'a> Lowering<'a> {
    fn new(
        app: &'a AppState,
        params: &'a GenerationParams,
        start: Start,
        logprobs: Option<usize>,
        prompt_field: &'static str,
    ) -> Result<Self, ApiError> {
        let guide = match &params.schema {
            None => None,
            Some(schema) => Some(app.text_pipeline.guide_compiler()?.compile(schema)?),
        };
        Ok(Self { app, params, start, logprobs, guide, prompt_field })
    }

    fn prompts(&self, prompts: Vec<EncodedPrompt>) -> Result<Vec<LoweredPrompt>, ApiError> {
        prompts
            .into_iter()
            .enumerate()
            .map(|(index, EncodedPrompt { ids, echo })| {
                Ok(LoweredPrompt { choices: self.choices(index, &ids)?, ids, echo })
            })
            .collect()
    }

    fn choices(&self, prompt_index: usize, prompt: &[u32]) -> Result<Vec<ChoiceJob>, ApiError> {
        let Self { app, params, .. } = self;
        let pipeline = &app.text_pipeline;
        let default = app.settings.max_tokens.or(pipeline.defaults.max_tokens);
        let max_tokens =
            answer_limit(&pipeline.limits, prompt, params.max_tokens, default, self.prompt_field)?;
        let choice = |number: usize| {
            let mut sampling = params.sampling.clone();
            sampling.seed = sampling.seed.wrapping_add(number as u64);
            ChoiceJob {
                choice: prompt_index * params.n + number,
                request: Request {
                    prompt: prompt.to_vec(),
                    max_tokens,
                    sampling,
                    eos: pipeline.eos.clone(),
                    stop: params.stop.clone(),
                    text: Some((pipeline.tokenizer.clone(), self.start)),
                },
                adjustments: params.adjustments.clone(),
                guide: self.guide.as_ref().map(Guide::independent_clone),
                logprobs: self.logprobs,
            }
        };
        Ok((0..params.n).map(choice).collect())
    }
}

/// Checks a prompt against the model's limits; returns the maximum number of tokens in the answer.
fn answer_limit(
    limits: &Limits,
    prompt: &[u32],
    requested: Option<usize>,
    default: Option<usize>,
    prompt_field: &str,
) -> Result<usize, ApiError> {
    limits
        .check(prompt)
        .and_then(|()| limits.max_tokens(prompt.len(), requested, default))
        .map_err(|error| ApiError::prompt(prompt_field, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prompts_that_exceed_the_context_have_a_code() {
        let limits = Limits { vocabulary: Some(10), context: Some(8) };
        let code = |prompt: &[u32], requested| {
            let error = answer_limit(&limits, prompt, requested, None, "prompt").unwrap_err().body();
            assert_eq!(error["error"]["param"], "prompt");
            error["error"]["code"].clone()
        };
        assert_eq!(code(&[1; 9], None), "context_length_exceeded");
        assert_eq!(code(&[1; 8], None), "context_length_exceeded");
        assert_eq!(code(&[1; 5], Some(4)), "context_length_exceeded");
        assert_eq!(code(&[10], None), Value::Null);
        assert_eq!(code(&[], None), Value::Null);
        assert_eq!(answer_limit(&limits, &[1; 8], Some(0), None, "prompt"), Ok(0));
        assert_eq!(answer_limit(&limits, &[1; 5], None, Some(100), "prompt"), Ok(3));
    }
}
