//! From a request to jobs: prompts are rendered and encoded, limits checked, formats compiled. Nothing is computed.

use serde_json::{Map, Value};

use super::app::App;
use super::engine::Draft;
use super::error::ApiError;
use super::reply::known_to;
use super::request::{ChatRequest, Common, CompletionRequest, Prompt, Wish, strict};
use crate::generate::{Limits, Request, Start};

/// A request, ready for the engine.
pub(super) struct Prepared {
    /// Which of the served models.
    pub(super) model: usize,
    pub(super) kind: Kind,
    pub(super) stream: bool,
    /// Whether a stream ends with the usage.
    pub(super) usage: bool,
    /// Whether log-probabilities are wanted, and with how many alternatives.
    pub(super) logprobs: Option<usize>,
    pub(super) prompts: Vec<Tokens>,
    /// How many answers each prompt has.
    pub(super) n: usize,
    /// The answers of each prompt.
    pub(super) drafts: Vec<Vec<Draft>>,
}

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A text, by going on with it.
    Completion,
    /// A conversation; `calls` where tools may be called.
    Chat { calls: bool },
}

/// A prompt.
pub(super) struct Tokens {
    pub(super) ids: Vec<u32>,
    /// What the answer begins with.
    pub(super) echo: Option<String>,
}

/// Prepares a chat.
pub(super) fn chat(app: &App, mut object: Map<String, Value>) -> Result<Prepared, ApiError> {
    let common = Common::take(&mut object)?;
    let (model, _) = app.model(common.model.as_deref())?;
    let request: ChatRequest = strict(object)?;
    request.check()?;
    let wish = common.wish(&app.texts.defaults, app.settings.max_batch)?;
    if wish.max_tokens == Some(0) {
        return Err(ApiError::field("max_tokens", "`max_tokens` is 0, not a number from 1 up"));
    }
    let logprobs = request.logprobs()?;
    let (template, extra) = (app.texts.template()?, request.extra()?);
    let prompt = template.render(&request.messages()?, &extra)?;
    // What is held to a format is no call.
    let calls = extra.tools.is_some() && wish.schema.is_none() && known_to(template);
    let ids = app.texts.tokenizer.encode(&prompt, false)?;
    let prompts = vec![Tokens { ids, echo: None }];
    let drafts = drafts(app, &wish, &prompts, Start::Answer, logprobs, "messages")?;
    let Wish { n, stream, usage, .. } = wish;
    Ok(Prepared { model, kind: Kind::Chat { calls }, stream, usage, logprobs, prompts, n, drafts })
}

/// Prepares a completion.
pub(super) fn completion(app: &App, mut object: Map<String, Value>) -> Result<Prepared, ApiError> {
    let common = Common::take(&mut object)?;
    let (model, _) = app.model(common.model.as_deref())?;
    let request: CompletionRequest = strict(object)?;
    let wish = common.wish(&app.texts.defaults, app.settings.max_batch)?;
    request.check(wish.n)?;
    let logprobs = request.logprobs()?;
    let tokenizer = &app.texts.tokenizer;
    let (mut texts, mut ids) = (Vec::new(), Vec::new());
    match &request.prompt {
        Prompt::Text(one) => texts.push(one.clone()),
        Prompt::Texts(several) => texts.clone_from(several),
        Prompt::Tokens(one) if one.is_empty() => {}
        Prompt::Tokens(one) => ids.push(one.clone()),
        Prompt::TokenLists(several) => ids.clone_from(several),
    }
    let echo = |text: String| request.echo().then_some(text);
    let mut prompts = Vec::with_capacity(texts.len() + ids.len());
    for text in texts {
        prompts.push(Tokens { ids: tokenizer.encode(&text, true)?, echo: echo(text) });
    }
    for ids in ids {
        let text = tokenizer.decode(&ids);
        prompts.push(Tokens { ids, echo: echo(text) });
    }
    if prompts.is_empty() {
        return Err(ApiError::field("prompt", "`prompt` is empty"));
    }
    let drafts = drafts(app, &wish, &prompts, Start::Continuation, logprobs, "prompt")?;
    let Wish { n, stream, usage, .. } = wish;
    Ok(Prepared { model, kind: Kind::Completion, stream, usage, logprobs, prompts, n, drafts })
}

/// The answers of each prompt.
fn drafts(
    app: &App,
    wish: &Wish,
    prompts: &[Tokens],
    start: Start,
    logprobs: Option<usize>,
    param: &str,
) -> Result<Vec<Vec<Draft>>, ApiError> {
    let guide = match &wish.schema {
        None => None,
        Some(schema) => {
            let vocabulary = app.texts.limits.vocabulary.unwrap_or_default();
            Some(app.texts.guides(vocabulary)?.json(schema)?)
        }
    };
    let usual = app.settings.max_tokens.or(app.texts.defaults.max_tokens);
    let mut all = Vec::with_capacity(prompts.len());
    for (number, prompt) in prompts.iter().enumerate() {
        let max_tokens = fit(&app.texts.limits, &prompt.ids, wish.max_tokens, usual, param)?;
        let draft = |choice: usize| {
            let mut sampling = wish.sampling.clone();
            sampling.seed = sampling.seed.wrapping_add((choice % wish.n) as u64);
            Draft {
                choice,
                request: Request {
                    prompt: prompt.ids.clone(),
                    max_tokens,
                    sampling,
                    eos: app.texts.eos.clone(),
                    stop: wish.stop.clone(),
                    text: Some((app.texts.tokenizer.clone(), start)),
                },
                adjust: wish.adjust.clone(),
                // A guide shares its tables with its copies; each answer on its way needs its own.
                guide: guide.as_ref().map(llguidance::Matcher::deep_clone),
                logprobs,
            }
        };
        all.push((number * wish.n..(number + 1) * wish.n).map(draft).collect());
    }
    Ok(all)
}

/// Checks a prompt against what the model can take, and gives how many tokens its answer may have.
fn fit(
    limits: &Limits,
    prompt: &[u32],
    asked: Option<usize>,
    usual: Option<usize>,
    param: &str,
) -> Result<usize, ApiError> {
    let long = |error: crate::generate::Error| ApiError::too_long(param, error.to_string());
    if let Some(context) = limits.context.filter(|context| prompt.len() > *context) {
        let message = format!("{} tokens are more than the model's context of {context}", prompt.len());
        return Err(ApiError::too_long(param, message));
    }
    limits.check(prompt).map_err(|error| ApiError::field(param, error.to_string()))?;
    limits.max_tokens(prompt.len(), asked, usual).map_err(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_has_a_code_and_what_is_wrong_has_none() {
        let limits = Limits { vocabulary: Some(10), context: Some(8) };
        let code = |prompt: &[u32], asked| {
            let error = fit(&limits, prompt, asked, None, "prompt").unwrap_err().body();
            assert_eq!(error["error"]["param"], "prompt");
            error["error"]["code"].clone()
        };
        assert_eq!(code(&[1; 9], None), "context_length_exceeded");
        assert_eq!(code(&[1; 8], None), "context_length_exceeded");
        assert_eq!(code(&[1; 5], Some(4)), "context_length_exceeded");
        assert_eq!(code(&[10], None), Value::Null);
        assert_eq!(code(&[], None), Value::Null);
        assert_eq!(fit(&limits, &[1; 8], Some(0), None, "prompt"), Ok(0));
        assert_eq!(fit(&limits, &[1; 5], None, Some(100), "prompt"), Ok(3));
    }
}
