//! The command line: clap types only.

mod surgery;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub use surgery::*;

/// Runs MLX language models and operates on their weights while they load.
#[derive(Debug, Parser)]
#[command(name = "mlxcel", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Refuses what clap cannot see: a comparison without surgery, which would compare a model with itself. (clap would
    /// take an empty `MLXCEL_SURGERY`, which means none, for a file.)
    ///
    /// # Errors
    /// A mistake in the command line.
    pub fn checked(self) -> Result<Self, clap::Error> {
        if let Command::Generate(args) = &self.command
            && args.compare
            && args.model.weights.surgery_file().is_none()
        {
            let mut root = Self::command();
            root.build();
            let mut command =
                root.find_subcommand_mut("generate").map_or_else(Self::command, |found| found.clone());
            let message = "`--compare` answers without and with surgery, and no surgery is named: `--surgery <FILE>` is \
                           missing (or `MLXCEL_SURGERY`)";
            return Err(command.error(ErrorKind::MissingRequiredArgument, message));
        }
        Ok(self)
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Plan, check and explain surgery files without reading a weight; export or compare what they make
    #[command(subcommand, arg_required_else_help = true)]
    Surgery(SurgeryCommand),
    /// Generate text, with the weights as they are or after surgery
    Generate(Box<GenerateArgs>),
    /// Serve a model over HTTP as OpenAI's API does, with the weights as they are or after surgery
    Serve(Box<ServeArgs>),
    /// Score a given text: log-probability of each token, and perplexity
    Score(ScoreArgs),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page (roff), of mlxcel or of one of its commands
    Man {
        /// The command, such as `surgery plan`
        command: Vec<String>,
    },
}

/// Which weights.
#[derive(Debug, Clone, Args)]
pub struct WeightsArgs {
    /// The model directory
    #[arg(long, short = 'm', value_name = "DIR")]
    pub model: PathBuf,
    /// Operate on the weights while they load, as this YAML file says (empty: no surgery)
    #[arg(long, value_name = "FILE", env = "MLXCEL_SURGERY", hide_env_values = true,
        value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub surgery: Option<PathBuf>,
    /// Data type of the weights in memory
    #[arg(long, value_enum, default_value_t = DtypeChoice::Auto)]
    pub dtype: DtypeChoice,
}

/// What every command that loads a model and then prints a result takes.
#[derive(Debug, Args)]
pub struct ModelArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap shows a doc comment on a flattened group as help")]
    pub weights: WeightsArgs,
    /// Print nothing but the result
    #[arg(long, short)]
    pub quiet: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// How to print the result; `json` is `--json`
    #[arg(long, value_enum, default_value_t = PlanFormat::Text, conflicts_with = "json", hide = true)]
    format: PlanFormat,
}

impl ModelArgs {
    /// Whether the result is printed as one JSON object.
    #[must_use]
    pub fn json(&self) -> bool {
        self.json || self.format == PlanFormat::Json
    }
}

impl WeightsArgs {
    /// Whether the surgery file is named by `MLXCEL_SURGERY` and not on the command line.
    #[must_use]
    pub fn surgery_by_environment(&self) -> bool {
        let named = |argument: OsString| {
            let argument = argument.into_encoded_bytes();
            argument == b"--surgery" || argument.starts_with(b"--surgery=")
        };
        self.surgery_file().is_some() && !std::env::args_os().any(named)
    }

    /// The surgery file: the flag, else `MLXCEL_SURGERY`; an empty name is none.
    #[must_use]
    pub fn surgery_file(&self) -> Option<&Path> {
        self.surgery.as_deref().filter(|file| !file.as_os_str().is_empty())
    }
}

/// `--dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DtypeChoice {
    /// What is fastest on this device without changing results
    Auto,
    /// What the checkpoint has
    Native,
    /// 32-bit floats, quantized weights dequantized
    F32,
    /// IEEE half precision
    F16,
    /// bfloat16
    Bf16,
}

/// `mlxcel generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap shows a doc comment on a flattened group as help")]
    pub model: ModelArgs,
    /// The prompt (`-` reads it from standard input)
    #[arg(
        long,
        short,
        value_name = "TEXT",
        required_unless_present = "tokens",
        conflicts_with = "tokens",
        allow_hyphen_values = true
    )]
    pub prompt: Option<String>,
    /// Token ids instead of a prompt; needs no tokenizer
    #[arg(long, value_name = "IDS", value_delimiter = ',', allow_negative_numbers = true, value_parser = whole::<u32>)]
    pub tokens: Option<Vec<u32>>,
    /// A system message for the chat template
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["raw", "tokens"], allow_hyphen_values = true)]
    pub system: Option<String>,
    /// Feed the prompt as it is, without the chat template
    #[arg(long)]
    pub raw: bool,
    /// Use this chat template (Jinja) instead of the model's
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw", "tokens"])]
    pub chat_template: Option<PathBuf>,
    /// Stop after so many tokens [default: the model's `generation_config.json`, else 512]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub max_tokens: Option<usize>,
    /// Sampling temperature; 0 always takes the likeliest token [default: `generation_config.json`, else 0]
    #[arg(long, value_name = "T", value_parser = from_zero, allow_negative_numbers = true)]
    pub temp: Option<f32>,
    /// Keep the likeliest tokens whose probabilities sum to P (nucleus sampling)
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    pub top_p: Option<f32>,
    /// Keep the K likeliest tokens (0: all)
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub top_k: Option<usize>,
    /// Keep tokens at least P times as likely as the likeliest
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    pub min_p: Option<f32>,
    /// Divide the logits of the last 20 tokens by R (1: off)
    #[arg(long, value_name = "R", value_parser = above_zero, allow_negative_numbers = true)]
    pub repetition_penalty: Option<f32>,
    /// Answer without and with surgery (`--surgery`), and tell where and by how much the two differ
    #[arg(long)]
    pub compare: bool,
    /// Seed of the sampler: the same seed gives the same text [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub seed: Option<u64>,
    /// Stop before this text (repeatable)
    #[arg(long, value_name = "TEXT", conflicts_with = "tokens", allow_hyphen_values = true,
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub stop: Vec<String>,
}

/// A whole number.
fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "it must be a whole number from 0 up".to_owned())
}

/// A number from 0 up.
fn from_zero(text: &str) -> Result<f32, String> {
    number(text, |number| number >= 0.0, "a number from 0 up")
}

/// A number above 0.
fn above_zero(text: &str) -> Result<f32, String> {
    number(text, |number| number > 0.0, "a number above 0")
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f32, String> {
    number(text, |number| (0.0..=1.0).contains(&number), "a number from 0 to 1")
}

fn number(text: &str, fits: impl Fn(f32) -> bool, wanted: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|number: &f32| number.is_finite() && fits(*number));
    number.ok_or_else(|| format!("it must be {wanted}"))
}

/// `mlxcel score`.
#[derive(Debug, Args)]
pub struct ScoreArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap shows a doc comment on a flattened group as help")]
    pub model: ModelArgs,
    /// A file with the text to score (`-` reads it from standard input)
    #[arg(long, value_name = "FILE", required_unless_present = "tokens", conflicts_with = "tokens")]
    pub text: Option<PathBuf>,
    /// Token ids instead of a text; needs no tokenizer
    #[arg(long, value_name = "IDS", value_delimiter = ',', allow_negative_numbers = true, value_parser = whole::<u32>)]
    pub tokens: Option<Vec<u32>>,
    /// Write the logits there: `logits`, f32 [tokens, vocabulary]
    #[arg(long, value_name = "OUT.safetensors")]
    pub logits: Option<PathBuf>,
}

/// `mlxcel serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap shows a doc comment on a flattened group as help")]
    pub weights: WeightsArgs,
    /// The address to listen at
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// The port to listen at (0: any that is free; it is printed)
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub port: u16,
    /// Listen at a Unix socket instead
    #[arg(long, value_name = "PATH", conflicts_with_all = ["host", "port"])]
    pub unix_socket: Option<PathBuf>,
    /// Another name for the model, beside that of its directory
    #[arg(long, value_name = "NAME")]
    pub alias: Option<String>,
    /// Serve the model without surgery too, as `<id>@base`: both share the tensors that stay as they are
    #[arg(long)]
    pub keep_base: bool,
    /// Use this chat template (Jinja) instead of the model's
    #[arg(long, value_name = "FILE")]
    pub chat_template: Option<PathBuf>,
    /// Take only requests with this key (better from the environment or a file: arguments are seen by everybody)
    #[arg(long, value_name = "KEY", env = "MLXCEL_API_KEY", hide_env_values = true)]
    pub api_key: Option<String>,
    /// Take only requests with one of the keys in this file, one a line
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// Let pages of this origin ask (repeatable; `*`: of any)
    #[arg(long, value_name = "ORIGIN")]
    pub cors_origin: Vec<String>,
    /// Answers in the making at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub max_batch: u16,
    /// Answers that may wait; more are refused with status 429
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub max_queue: u16,
    /// Positions to use at most, prompt and answer together [default: the model's context]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ctx_size: Option<u32>,
    /// Tokens of an answer where a request does not say [default: `generation_config.json`, else 512]
    #[arg(long, short = 'n', value_name = "N")]
    pub max_tokens: Option<usize>,
    /// Seconds that a request may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    pub request_timeout: u32,
    /// Seconds that answers may go on after Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub shutdown_timeout: u32,
    /// Megabytes of earlier prompts that are kept, so that they need not be read again (0: none)
    #[arg(long, value_name = "MB", default_value_t = 512)]
    pub prompt_cache: u32,
    /// Megabytes of a request's body
    #[arg(long, value_name = "MB", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub max_body: u16,
    /// How to write the log on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Log nothing but warnings
    #[arg(long, short)]
    pub quiet: bool,
}

/// `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line of text each
    Text,
    /// A JSON object each
    Json,
}
