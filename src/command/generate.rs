//! `mlxcel generate`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bar::Bar;
use super::session::{self, Ended, Model, Session, rate, seconds};
use super::{Exit, Outcome, interrupt, output};
use crate::cli::GenerateArgs;
use crate::generate::{
    ChatTemplate, Defaults, Error, Generation, Limits, PromptError, Request, Sampling, Start, TemplateInputs,
    Tokenizer, message,
};

pub(super) fn run(args: &GenerateArgs) -> Outcome {
    session::outcome(work(args))
}

fn work(args: &GenerateArgs) -> Result<Exit, Ended> {
    interrupt::listen()?;
    let session = Session::open(&args.model.weights, args.model.quiet)?;
    let request = request(args, &session)?;
    if args.compare {
        return super::compare::run(session, request, args.model.json());
    }
    let model = session.load()?;
    let limits = Limits { vocabulary: Some(model.loaded.model.vocabulary()), ..Limits::default() };
    limits.check(&request.prompt)?;
    answer(args, &model, request)
}

/// What is to be generated; refuses what the model cannot take.
fn request(args: &GenerateArgs, session: &Session<'_>) -> Result<Request, Ended> {
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
) -> Result<(Vec<u32>, Start), Ended> {
    let prompt = if prompt == "-" { typed(session::standard_input()?) } else { prompt.to_owned() };
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

/// Without the line break that `echo` and editors put at the end: on the command line a prompt has none either.
fn typed(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// The model's own advice, overridden by flags one by one.
fn sampling(args: &GenerateArgs, defaults: &Defaults) -> Sampling {
    let advised = defaults.sampling();
    Sampling {
        temperature: args.temp.unwrap_or(advised.temperature),
        top_k: args.top_k.unwrap_or(advised.top_k),
        top_p: args.top_p.unwrap_or(advised.top_p),
        min_p: args.min_p.unwrap_or(advised.min_p),
        repetition_penalty: args.repetition_penalty.unwrap_or(advised.repetition_penalty),
        seed: args.seed.unwrap_or(advised.seed),
        ..advised
    }
}

/// What came of a generation, also of one that was broken off.
#[derive(Default)]
struct Answer {
    text: Option<String>,
    tokens: Vec<u32>,
    finish: Option<&'static str>,
    prefill: Duration,
    first_token: Option<Duration>,
    decode: Duration,
}

fn answer(args: &GenerateArgs, model: &Model, request: Request) -> Result<Exit, Ended> {
    let prompt_len = request.prompt.len();
    let has_text = request.text.is_some();
    let mut shown = Shown { live: !args.model.json(), open: true, comma: (!has_text).then_some("") };
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
    let mut answer = Answer { prefill: begin.elapsed(), ..Answer::default() };
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
                return Ok(Exit::Fine);
            }
        }
        let sequence = generation.sequence();
        let times = generation.times();
        answer = Answer {
            text: None,
            tokens: sequence.answer().to_vec(),
            finish: sequence.finish().map(crate::generate::FinishReason::name),
            prefill: times.prefill,
            first_token: times.first_token,
            decode: times.decode,
        };
    }
    answer.text = has_text.then_some(text);
    shown.end()?;
    if args.model.json() {
        output::stdout(&format!("{}\n", answer.json(model, prompt_len)))?;
    }
    if !args.model.quiet {
        output::stderr(&answer.line(prompt_len));
    }
    Ok(if interrupt::stop().requested() { Exit::Interrupted } else { Exit::Fine })
}

impl Answer {
    /// Decoding is measured from the first token on.
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
                "peak_memory_bytes": session::peak_memory(),
            },
            "surgery": model.surgery(),
        })
    }

    fn line(&self, prompt_len: usize) -> String {
        let speed = |rate: Option<f64>| rate.map_or(String::new(), |rate| format!(" at {rate:.1} tokens/s"));
        let first =
            self.first_token.map_or(String::new(), |time| format!(", the first after {}", seconds(time)));
        let memory = session::peak_memory()
            .map_or(String::new(), |bytes| format!("; peak memory {} MB", bytes / 1_000_000));
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
    /// Whether anything is shown before the end.
    live: bool,
    /// Whether somebody still reads.
    open: bool,
    /// Where token ids are shown instead of text: what stands before the next.
    comma: Option<&'static str>,
}

impl Shown {
    fn piece(&mut self, text: &str, token: Option<u32>) -> Result<(), Ended> {
        match (self.comma, token) {
            (Some(comma), Some(token)) => {
                self.comma = Some(",");
                self.write(&format!("{comma}{token}"))
            }
            _ => self.write(text),
        }
    }

    fn end(&mut self) -> Result<(), Ended> {
        self.write("\n")
    }

    fn write(&mut self, text: &str) -> Result<(), Ended> {
        if self.live && !text.is_empty() {
            self.open = output::piece(text)?;
        }
        Ok(())
    }
}
