//! `mlxcel generate`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bar::Bar;
use super::exit::Exit;
use super::failure::{Failure, Outcome};
use super::load_session::{self, Model, Session, rate, seconds};
use super::{interrupt, output};
use crate::cli::GenerateArgs;
use crate::diagnostic::bytes;
use crate::generate::{
    ChatTemplate, Defaults, Error, Generation, Limits, PromptError, Request, Sampling, Start, TemplateInputs,
    Tokenizer, message,
};
use crate::weights;

pub(super) fn run(args: &GenerateArgs) -> Outcome {
    interrupt::listen()?;
    let session = Session::open(&args.model.weights, args.model.quiet)?;
    let request = request(args, &session)?;
    if args.compare {
        return super::compare::run(session, request, args.model.is_json());
    }
    let model = session.load()?;
    let limits = Limits { vocabulary: Some(model.loaded.model.vocabulary()), ..Limits::default() };
    limits.check(&request.prompt)?;
    complete(args, &model, request)
}

/// The request. Refuses what the model cannot take.
fn request(args: &GenerateArgs, session: &Session<'_>) -> Result<Request, Failure> {
    let config = &session.plan.base().config.json;
    let defaults = Defaults::read(&args.model.weights.model)?;
    let (prompt, text) = match (&args.tokens, &args.prompt) {
        (Some(tokens), _) => (tokens.clone(), None),
        (None, prompt) => {
            let tokenizer = Arc::new(Tokenizer::open(&args.model.weights.model)?);
            let (prompt, start) = prompt_tokens(args, &tokenizer, prompt.as_deref().unwrap_or_default())?;
            (prompt, Some((tokenizer, start)))
        }
    };
    let limits = Limits::of_config(config);
    limits.check(&prompt)?;
    let max_tokens = limits.max_tokens(prompt.len(), args.max_tokens, defaults.max_tokens)?;
    let eos = defaults.eos_ids(config, text.as_ref().map(|(tokenizer, _)| &**tokenizer));
    Ok(Request {
        prompt,
        max_tokens,
        sampling: sampling(args, &defaults),
        eos,
        stop: args.stop.clone(),
        text,
    })
}

fn prompt_tokens(
    args: &GenerateArgs,
    tokenizer: &Tokenizer,
    prompt: &str,
) -> Result<(Vec<u32>, Start), Failure> {
    let prompt =
        if prompt == "-" { without_line_break(load_session::standard_input()?) } else { prompt.to_owned() };
    if prompt.is_empty() {
        return Err(Error::from(PromptError::Empty).into());
    }
    let template = if args.raw {
        None
    } else {
        ChatTemplate::find(&args.model.weights.model, tokenizer, args.chat_template.as_deref())?
    };
    let Some(template) = template else {
        if args.system.is_some() {
            return Err(Error::from(PromptError::SystemWithoutTemplate).into());
        }
        return Ok((tokenizer.encode(&prompt, true)?, Start::Continuation));
    };
    let system = args.system.as_deref().map(|text| message("system", text));
    let messages: Vec<_> = system.into_iter().chain([message("user", &prompt)]).collect();
    let rendered = template.render(&messages, &TemplateInputs::default())?;
    Ok((tokenizer.encode(&rendered, false)?, Start::Answer))
}

/// A prompt without the final line break that `echo` and editors add.
fn without_line_break(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// The model's own sampling settings; a flag overrides each.
fn sampling(args: &GenerateArgs, defaults: &Defaults) -> Sampling {
    let defaults = defaults.sampling();
    Sampling {
        temperature: args.temp.unwrap_or(defaults.temperature),
        top_k: args.top_k.unwrap_or(defaults.top_k),
        top_p: args.top_p.unwrap_or(defaults.top_p),
        min_p: args.min_p.unwrap_or(defaults.min_p),
        repetition_penalty: args.repetition_penalty.unwrap_or(defaults.repetition_penalty),
        seed: args.seed.unwrap_or(defaults.seed),
        ..defaults
    }
}

/// A completion, possibly interrupted.
#[derive(Default)]
struct Completion {
    text: Option<String>,
    tokens: Vec<u32>,
    finish: Option<&'static str>,
    prefill: Duration,
    first_token: Option<Duration>,
    decode: Duration,
}

fn complete(args: &GenerateArgs, model: &Model, request: Request) -> Outcome {
    let prompt_len = request.prompt.len();
    let has_text = request.text.is_some();
    let mut shown = Shown { live: !args.model.is_json(), open: true, comma: (!has_text).then_some("") };
    let mut text = String::new();
    interrupt::hold();
    let begin = Instant::now();
    let line = "{msg} {bar:30} {pos}/{len} tokens {eta}";
    let mut bar = (!args.model.quiet).then(|| Bar::new("reading the prompt", line));
    let generation = Generation::start(&*model.loaded.model, request, |done| {
        if let Some(bar) = &mut bar {
            bar.set(done as u64, prompt_len as u64);
        }
        if interrupt::stop().requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    drop(bar);
    let mut completion = Completion { prefill: begin.elapsed(), ..Completion::default() };
    if let Some(mut generation) = generation {
        loop {
            if interrupt::stop().requested() {
                let held = generation.break_off();
                shown.piece(&held, None)?;
                text.push_str(&held);
                break;
            }
            let Some(piece) = generation.next().transpose()? else { break };
            shown.piece(&piece.text, Some(piece.token))?;
            text.push_str(&piece.text);
            if !shown.open {
                return Ok(Exit::Success);
            }
        }
        let sequence = generation.sequence();
        let times = generation.times();
        completion = Completion {
            text: None,
            tokens: sequence.answer().to_vec(),
            finish: sequence.finish().map(crate::generate::FinishReason::name),
            prefill: times.prefill,
            first_token: times.first_token,
            decode: times.decode,
        };
    }
    completion.text = has_text.then_some(text);
    shown.end()?;
    if args.model.is_json() {
        output::stdout(&format!("{}\n", completion.json(model, prompt_len)))?;
    }
    if !args.model.quiet {
        output::stderr(&completion.line(prompt_len));
    }
    Ok(if interrupt::stop().requested() { Exit::Interrupted } else { Exit::Success })
}

impl Completion {
    /// Tokens per second, measured from the first token on.
    fn decode_rate(&self) -> Option<f64> {
        rate(self.tokens.len().saturating_sub(1), self.decode)
    }

    fn json(&self, model: &Model, prompt_len: usize) -> Value {
        json!({
            "text": self.text,
            "tokens": self.tokens,
            "finish_reason": self.finish,
            "usage": {"prompt_tokens": prompt_len, "completion_tokens": self.tokens.len()},
            "timings": {
                "load_s": model.load_seconds(),
                "ttft_s": self.first_token.map(|time| time.as_secs_f64()),
                "prefill_tokens_per_second": rate(prompt_len, self.prefill),
                "decode_tokens_per_second": self.decode_rate(),
                "peak_memory_bytes": weights::peak_memory(),
            },
            "surgery": model.surgery(),
        })
    }

    fn line(&self, prompt_len: usize) -> String {
        let speed = |rate: Option<f64>| rate.map_or(String::new(), |rate| format!(" at {rate:.1} tokens/s"));
        let first =
            self.first_token.map_or(String::new(), |time| format!(", first token after {}", seconds(time)));
        let memory =
            weights::peak_memory().map_or(String::new(), |peak| format!("; peak memory {}", bytes(peak)));
        format!(
            "read {prompt_len} tokens{}; wrote {}{}{first}{memory}\n",
            speed(rate(prompt_len, self.prefill)),
            self.tokens.len(),
            speed(self.decode_rate()),
        )
    }
}

/// Standard output while tokens arrive.
struct Shown {
    /// Whether tokens are shown as they arrive.
    live: bool,
    /// Whether something still reads.
    open: bool,
    /// Set if token ids are shown instead of text: what precedes the next.
    comma: Option<&'static str>,
}

impl Shown {
    fn piece(&mut self, text: &str, token: Option<u32>) -> Result<(), Failure> {
        match (self.comma, token) {
            (Some(comma), Some(token)) => {
                self.comma = Some(",");
                self.write(&format!("{comma}{token}"))
            }
            _ => self.write(text),
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.write("\n")
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        if self.live && !text.is_empty() {
            self.open = output::stdout_piece(text)?;
        }
        Ok(())
    }
}
