//! The command line: clap types only.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{OsStringValueParser, PossibleValue, StringValueParser, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::diagnostic::Code;

/// Runs MLX language models and operates on their weights while they load.
#[derive(Debug, Parser)]
#[command(name = "mlxcel", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Plan, check and explain surgery files, without reading a weight
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

/// `mlxcel surgery …`.
#[derive(Debug, Subcommand)]
pub enum SurgeryCommand {
    /// Show what a surgery file would do to a model
    Plan(PlanArgs),
    /// Validate surgery files
    Check(CheckArgs),
    /// List the keys that a pattern would see in a model
    Keys(KeysArgs),
    /// Write the checkpoint that a surgery file makes of a model
    Export(ExportArgs),
    /// Compare two checkpoints, or a model with what a surgery file makes of it
    ///
    /// Exit code 0: both could be compared, whether or not they differ; 1: they could not.
    Diff(DiffArgs),
    /// Explain a diagnostic's code
    Explain(ExplainArgs),
    /// Print the JSON Schema of surgery files, for editors
    Schema,
}

/// `mlxcel surgery plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The surgery file (YAML)
    pub file: PathBuf,
    /// The model directory
    #[arg(long, short = 'm', value_name = "DIR")]
    pub model: PathBuf,
    /// How to print the plan
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    format: PlanFormat,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// List every tensor instead of folding by layer
    #[arg(long)]
    pub all: bool,
    /// Count warnings as errors
    #[arg(long, value_name = "WHAT")]
    pub deny: Option<Deny>,
}

/// Output of `plan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For people
    Text,
    /// For machines
    Json,
}

/// What `--deny` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Warnings fail the run; advice does not
    Warnings,
}

/// `mlxcel surgery check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Surgery files (YAML)
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Check patterns, shapes and dtypes against this model directory too
    #[arg(long, short = 'm', value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Leave donors alone: they need not exist here
    #[arg(long)]
    pub no_donors: bool,
    /// How to print what was found
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    format: CheckFormat,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Count warnings as errors
    #[arg(long, value_name = "WHAT")]
    pub deny: Option<Deny>,
}

/// Output of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people
    Text,
    /// For machines
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands that GitHub shows as annotations
    Github,
}

/// `mlxcel surgery keys`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("of").required(true))]
pub struct KeysArgs {
    /// Only the keys that this pattern matches
    pub pattern: Option<String>,
    /// The model directory
    #[arg(long, short = 'm', value_name = "DIR", group = "of")]
    pub model: Option<PathBuf>,
    /// A donor in place of a model: a .safetensors file, a directory or an index file; its keys are listed as they are
    #[arg(long, value_name = "PATH", group = "of")]
    pub donor: Option<PathBuf>,
    /// How to print the keys
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    format: PlanFormat,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// `mlxcel surgery export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The surgery file (YAML)
    pub file: PathBuf,
    /// The model directory
    #[arg(long, short = 'm', value_name = "DIR")]
    pub model: PathBuf,
    /// The directory to write, which must not exist
    #[arg(long, short, value_name = "NEW")]
    pub output: PathBuf,
    /// How to say what was done
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    format: PlanFormat,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Count warnings as errors; after one of the plan nothing is written
    #[arg(long, value_name = "WHAT")]
    pub deny: Option<Deny>,
}

/// `mlxcel surgery diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A model directory, or weights to compare with others
    pub first: PathBuf,
    /// The weights to compare with: a directory, a .safetensors file or an index file
    #[arg(required_unless_present = "surgery", conflicts_with = "surgery")]
    pub second: Option<PathBuf>,
    /// Compare the model with what this surgery file (YAML) makes of it
    #[arg(long, value_name = "FILE")]
    pub surgery: Option<PathBuf>,
    /// How to print the differences
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    format: PlanFormat,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// List every tensor instead of folding by layer
    #[arg(long)]
    pub all: bool,
}

/// What `--format` and `--json` come to.
macro_rules! formats {
    ($($args:ident: $format:ident,)*) => {
        $(impl $args {
            /// How to print.
            #[must_use]
            pub fn format(&self) -> $format {
                if self.json { $format::Json } else { self.format }
            }
        })*
    };
}

formats! {
    PlanArgs: PlanFormat,
    CheckArgs: CheckFormat,
    KeysArgs: PlanFormat,
    ExportArgs: PlanFormat,
    DiffArgs: PlanFormat,
}

/// `mlxcel surgery explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code, such as `no_match` or `surgery::no_match`; without one, all codes are listed
    #[arg(conflicts_with = "all", value_parser = Codes, hide_possible_values = true)]
    pub code: Option<String>,
    /// List all codes by severity
    #[arg(long)]
    pub all: bool,
}

/// Any text, of which the codes are offered for completion.
#[derive(Debug, Clone)]
struct Codes;

impl TypedValueParser for Codes {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Code::ALL.iter().map(|code| PossibleValue::new(code.name()).help(code.summary()))))
    }
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
    /// Answer without and with surgery, and tell where and by how much the two differ
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
