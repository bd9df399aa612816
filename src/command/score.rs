//! `mlxcel score`.

use std::fmt::Write as _;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::exit::Exit;
use super::export::cleared;
use super::failure::{Failure, Outcome};
use super::load_session::{self, Session, rate, seconds};
use super::{interrupt, output};
use crate::checkpoint::neighbour;
use crate::cli::ScoreArgs;
use crate::diagnostic::system;
use crate::execute::{NewFile, clear_leftovers};
use crate::generate::{Error, Limits, Score, Tokenizer, read_text, score};
use crate::weights;

pub(super) fn run(args: &ScoreArgs) -> Outcome {
    interrupt::listen()?;
    if let Some(path) = args.logits.as_deref().filter(|path| path.symlink_metadata().is_ok()) {
        let reason = "already exists".to_owned();
        let help = Some("remove it or name another file".to_owned());
        return Err(Error::File { path: path.to_owned(), reason, help }.into());
    }
    let session = Session::open(&args.model.weights, args.model.quiet)?;
    let tokens = tokens(args)?;
    Limits::of_config(&session.plan.base().config.json).check(&tokens)?;
    let model = session.load()?;
    let vocabulary = model.loaded.model.vocabulary();
    Limits { vocabulary: Some(vocabulary), ..Limits::default() }.check(&tokens)?;

    for path in args.logits.as_deref().map(clear_leftovers).unwrap_or_default() {
        if !args.model.quiet {
            output::stderr(&format!("{}\n", cleared(&path)));
        }
    }
    let begin = Instant::now();
    let mut file =
        args.logits.as_deref().map(|path| LogitsFile::begin(path, tokens.len(), vocabulary)).transpose()?;
    let score = score(&*model.loaded.model, &tokens, |logits| match &mut file {
        Some(file) => file.write(logits),
        None => Ok(()),
    })?;
    if let Some(file) = file {
        file.end()?;
    }
    let time = begin.elapsed();
    let text = if args.model.is_json() {
        let object = json!({
            "tokens": tokens,
            "logprobs": score.logprobs,
            "perplexity": score.perplexity(),
            "timings": {
                "load_s": model.load_seconds(),
                "score_s": time.as_secs_f64(),
                "prefill_tokens_per_second": rate(tokens.len(), time),
                "peak_memory_bytes": weights::peak_memory(),
            },
            "surgery": model.surgery(),
        });
        format!("{object}\n")
    } else {
        table(&tokens, &score)
    };
    output::stdout(&text).map_err(|error| match &args.logits {
        Some(path) => {
            error.context(&format!("the logits `{}` are complete, but the score is lost", path.display()))
        }
        None => error,
    })?;
    if !args.model.quiet {
        let speed = rate(tokens.len(), time).map_or(String::new(), |rate| format!(" at {rate:.1} tokens/s"));
        output::stderr(&format!("scored {} tokens in {}{speed}\n", tokens.len(), seconds(time)));
    }
    Ok(Exit::Success)
}

fn tokens(args: &ScoreArgs) -> Result<Vec<u32>, Failure> {
    if let Some(tokens) = &args.tokens {
        return Ok(tokens.clone());
    }
    let Some(path) = &args.text else { return Err(Failure::new("there is no text to score")) };
    let tokenizer = Tokenizer::open(&args.model.weights.model)?;
    let text = if load_session::is_standard_input(path) {
        load_session::standard_input()?
    } else {
        read_text(path).map_err(hint_at_text)?
    };
    if text.is_empty() {
        return Err(Failure::new("the text to score is empty"));
    }
    Ok(tokenizer.encode(&text, true)?)
}

/// Adds a hint where the name is no file's: it may be the text itself.
fn hint_at_text(error: Error) -> Error {
    const TEXT: &str = "`--text` takes a file with the text, or `-` for standard input";
    let Error::File { path, reason, help } = error else { return error };
    let help = match path.symlink_metadata().map_err(|error| error.kind()) {
        Err(ErrorKind::NotFound) => {
            let near = neighbour(&path, &["txt", "md"]).map_or_else(String::new, |near| format!("{near} "));
            Some(format!("{near}{TEXT}"))
        }
        Err(ErrorKind::InvalidFilename) => Some(match help {
            Some(help) => format!("{help}; {TEXT}"),
            None => TEXT.to_owned(),
        }),
        _ => help,
    };
    Error::File { path, reason, help }
}

/// One line per token, and the perplexity.
fn table(tokens: &[u32], score: &Score) -> String {
    let mut text = String::new();
    for (token, logprob) in tokens.iter().zip(&score.logprobs) {
        let logprob = logprob.map_or_else(|| "-".to_owned(), |logprob| format!("{logprob:.6}"));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{token}\t{logprob}");
    }
    if let Some(perplexity) = score.perplexity() {
        let _ = writeln!(text, "perplexity {perplexity:.6}");
    }
    text
}

/// A safetensors file with one tensor `logits`, f32 `[T, V]`, written beside its name and renamed when complete.
struct LogitsFile<'p> {
    path: &'p Path,
    file: BufWriter<NewFile<'static>>,
}

impl<'p> LogitsFile<'p> {
    fn begin(path: &'p Path, tokens: usize, vocabulary: usize) -> Result<Self, Failure> {
        let bytes = tokens * vocabulary * 4;
        let logits = json!({"dtype": "F32", "shape": [tokens, vocabulary], "data_offsets": [0, bytes]});
        let mut header = json!({"logits": logits}).to_string();
        // The data begins at a multiple of 8 bytes.
        header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
        let open = || {
            let mut file = BufWriter::with_capacity(1 << 20, NewFile::begin(path, interrupt::stop())?);
            file.write_all(&(header.len() as u64).to_le_bytes())?;
            file.write_all(header.as_bytes())?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(cannot_write(path, &error).into()),
        }
    }

    fn write(&mut self, logits: &[f32]) -> Result<(), Error> {
        logits
            .iter()
            .try_for_each(|logit| self.file.write_all(&logit.to_le_bytes()))
            .map_err(|error| cannot_write(self.path, &error))
    }

    fn end(self) -> Result<(), Failure> {
        let Self { path, file } = self;
        let file = file.into_inner().map_err(|error| cannot_write(path, error.error()))?;
        Ok(file.publish().map_err(|error| cannot_write(path, &error))?)
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    let reason = format!("cannot be written: {}", system::says(error));
    Error::File { path: path.to_owned(), reason, help: Some(system::writing(error).to_owned()) }
}
