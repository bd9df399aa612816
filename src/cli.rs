//! The command line: clap types only. A flattened group has no doc comment, because clap would show it as help.

mod surgery;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use surgery::*;

/// Run MLX language models and edit their weights while they load
#[derive(Debug, Parser)]
#[command(name = "mlxcel", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Refuses `--compare` without surgery, which would compare a model with itself. clap cannot: it would count an empty
    /// `MLXCEL_SURGERY`, which means no surgery, as a file.
    ///
    /// # Errors
    /// A usage error.
    pub(crate) fn checked(self) -> Result<Self, clap::Error> {
        if let Command::Generate(args) = &self.command
            && args.compare
            && args.model.weights.surgery_file().is_none()
        {
            let mut root = Self::command();
            root.build();
            let mut command =
                root.find_subcommand_mut("generate").map_or_else(Self::command, |found| found.clone());
            let message = "`--compare` needs a surgery file: pass `--surgery <FILE>` or set `MLXCEL_SURGERY`";
            return Err(command.error(ErrorKind::MissingRequiredArgument, message));
        }
        Ok(self)
    }
}

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan, check and explain surgery files without reading a weight; export or compare the edited checkpoint
    #[command(subcommand, arg_required_else_help = true)]
    Surgery(SurgeryCommand),
    /// Generate text, optionally with edited weights
    Generate(Box<GenerateArgs>),
    /// Serve a model over an OpenAI-compatible HTTP API, optionally with edited weights
    Serve(Box<ServeArgs>),
    /// Score a text: log-probability of each token, and perplexity
    Score(ScoreArgs),
    /// Print a shell completion script
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff) of mlxcel or one of its commands
    Man {
        /// Command, such as `surgery plan`
        command: Vec<String>,
    },
}

/// The weights to load.
#[derive(Debug, Clone, Args)]
pub(crate) struct WeightsArgs {
    /// Model directory
    #[arg(long, short = 'm', value_name = "DIR")]
    pub(crate) model: PathBuf,
    /// Surgery file (YAML) to apply while the weights load (empty: none)
    #[arg(long, value_name = "FILE", env = "MLXCEL_SURGERY", hide_env_values = true,
        value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) surgery: Option<PathBuf>,
    /// Data type to compute in
    #[arg(long, value_enum, default_value_t = DtypeChoice::Auto)]
    pub(crate) dtype: DtypeChoice,
}

/// Arguments of commands that load a model and print a result.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    pub(crate) weights: WeightsArgs,
    /// Print only the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Output format; `json` is the same as `--json`
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, conflicts_with = "json", hide = true)]
    format: OutputFormat,
}

impl ModelArgs {
    /// Whether the result is printed as one JSON object.
    #[must_use]
    pub(crate) fn json(&self) -> bool {
        self.json || self.format == OutputFormat::Json
    }
}

impl WeightsArgs {
    /// Whether `MLXCEL_SURGERY` names the surgery file, and not the command line.
    #[must_use]
    pub(crate) fn surgery_by_environment(&self) -> bool {
        let named = |argument: OsString| {
            let argument = argument.into_encoded_bytes();
            argument == b"--surgery" || argument.starts_with(b"--surgery=")
        };
        self.surgery_file().is_some() && !std::env::args_os().any(named)
    }

    /// The surgery file: the flag, else `MLXCEL_SURGERY`; an empty name is none.
    #[must_use]
    pub(crate) fn surgery_file(&self) -> Option<&Path> {
        self.surgery.as_deref().filter(|file| !file.as_os_str().is_empty())
    }
}

/// `--dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DtypeChoice {
    /// The fastest on this device that does not change results
    Auto,
    /// The checkpoint's data type
    Native,
    /// 32-bit floats; quantized weights are dequantized
    F32,
    /// IEEE half precision
    F16,
    /// bfloat16
    Bf16,
}

/// `mlxcel generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Prompt (`-`: read it from standard input)
    #[arg(
        long,
        short,
        value_name = "TEXT",
        required_unless_present = "tokens",
        conflicts_with = "tokens",
        allow_hyphen_values = true
    )]
    pub(crate) prompt: Option<String>,
    /// Prompt as token ids; needs no tokenizer
    #[arg(long, value_name = "IDS", value_delimiter = ',', allow_negative_numbers = true, value_parser = whole::<u32>)]
    pub(crate) tokens: Option<Vec<u32>>,
    /// System message for the chat template
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["raw", "tokens"], allow_hyphen_values = true)]
    pub(crate) system: Option<String>,
    /// Use the prompt as it is, without the chat template
    #[arg(long)]
    pub(crate) raw: bool,
    /// Chat template (Jinja) to use instead of the model's
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw", "tokens"])]
    pub(crate) chat_template: Option<PathBuf>,
    /// Generate at most N tokens [default: `max_new_tokens` in `generation_config.json`, else 512]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) max_tokens: Option<usize>,
    /// Sampling temperature; 0 is greedy decoding [default: `generation_config.json`, else 0]
    #[arg(long, value_name = "T", value_parser = from_zero, allow_negative_numbers = true)]
    pub(crate) temp: Option<f32>,
    /// Nucleus sampling: sample from the most likely tokens whose probabilities add up to P
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    pub(crate) top_p: Option<f32>,
    /// Sample from the K most likely tokens (0: all)
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) top_k: Option<usize>,
    /// Sample from tokens at least P times as likely as the most likely one
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    pub(crate) min_p: Option<f32>,
    /// Penalize the last 20 tokens by the factor R (1: off)
    #[arg(long, value_name = "R", value_parser = above_zero, allow_negative_numbers = true)]
    pub(crate) repetition_penalty: Option<f32>,
    /// Generate with and without surgery, and print the KL divergence per token
    #[arg(long)]
    pub(crate) compare: bool,
    /// Sampling seed; the same seed gives the same text [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) seed: Option<u64>,
    /// Stop before TEXT is generated (repeatable)
    #[arg(long, value_name = "TEXT", conflicts_with = "tokens", allow_hyphen_values = true,
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) stop: Vec<String>,
}

/// A whole number.
fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "must be a whole number, 0 or larger".to_owned())
}

/// A number, 0 or larger.
fn from_zero(text: &str) -> Result<f32, String> {
    number(text, |number| number >= 0.0, "a number, 0 or larger")
}

/// A number larger than 0.
fn above_zero(text: &str) -> Result<f32, String> {
    number(text, |number| number > 0.0, "a number larger than 0")
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f32, String> {
    number(text, |number| (0.0..=1.0).contains(&number), "a number from 0 to 1")
}

fn number(text: &str, fits: impl Fn(f32) -> bool, wanted: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|number: &f32| number.is_finite() && fits(*number));
    number.ok_or_else(|| format!("must be {wanted}"))
}

/// `mlxcel score`.
#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// File with the text to score (`-`: read it from standard input)
    #[arg(long, value_name = "FILE", required_unless_present = "tokens", conflicts_with = "tokens")]
    pub(crate) text: Option<PathBuf>,
    /// Text as token ids; needs no tokenizer
    #[arg(long, value_name = "IDS", value_delimiter = ',', allow_negative_numbers = true, value_parser = whole::<u32>)]
    pub(crate) tokens: Option<Vec<u32>>,
    /// Write the logits to this file, as a tensor `logits`: f32 [tokens, vocabulary]
    #[arg(long, value_name = "OUT.safetensors")]
    pub(crate) logits: Option<PathBuf>,
}

/// `mlxcel serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) weights: WeightsArgs,
    /// Address to listen on
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port to listen on (0: any free port, which is printed)
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub(crate) port: u16,
    /// Listen on a Unix socket instead
    #[arg(long, value_name = "PATH", conflicts_with_all = ["host", "port"])]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Additional model name, besides that of its directory
    #[arg(long, value_name = "NAME")]
    pub(crate) alias: Option<String>,
    /// Also serve the model without surgery, as `<id>@base`; both share the unedited tensors
    #[arg(long)]
    pub(crate) keep_base: bool,
    /// Chat template (Jinja) to use instead of the model's
    #[arg(long, value_name = "FILE")]
    pub(crate) chat_template: Option<PathBuf>,
    /// Require this API key (safer in the environment or a file: other users can see arguments)
    #[arg(long, value_name = "KEY", env = "MLXCEL_API_KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
    /// Require one of the API keys in this file, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// Allow cross-origin (CORS) requests from this origin (repeatable; `*`: any)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors_origin: Vec<String>,
    /// Maximum number of sequences decoded concurrently
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) max_batch: u16,
    /// Maximum number of queued requests; further ones get status 429
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) max_queue: u16,
    /// Maximum context length (prompt + completion tokens) [default: the model's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ctx_size: Option<u32>,
    /// Default maximum tokens per answer [default: `generation_config.json`, else 512]
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) max_tokens: Option<usize>,
    /// Request timeout in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) request_timeout: u32,
    /// Time in seconds to finish running requests after Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) shutdown_timeout: u32,
    /// Prompt-cache size in MB (0 disables it)
    #[arg(long, value_name = "MB", default_value_t = 512)]
    pub(crate) prompt_cache: u32,
    /// Maximum size of a request body in MB
    #[arg(long, value_name = "MB", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) max_body: u16,
    /// Log format (the log goes to standard error)
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// Log only warnings and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line of text per event
    Text,
    /// One JSON object per event
    Json,
}
