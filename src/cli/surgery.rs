//! `mlxcel surgery …`: clap types only.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use crate::diagnostic::Code;

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
    #[command(flatten)]
    print: FormatArgs,
    /// List every tensor instead of folding by layer
    #[arg(long)]
    pub all: bool,
    /// Count warnings as errors
    #[arg(long, value_name = "WHAT")]
    pub deny: Option<Deny>,
}

/// How most commands print what they have to say. No doc comment on its uses: clap would show that as help.
#[derive(Debug, Args)]
struct FormatArgs {
    /// How to print it
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    format: PlanFormat,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Output of all commands but `check`.
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
    #[command(flatten)]
    print: FormatArgs,
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
    #[command(flatten)]
    print: FormatArgs,
    /// Count warnings as errors: nothing is written then
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
    #[command(flatten)]
    print: FormatArgs,
    /// List every tensor instead of folding by layer
    #[arg(long)]
    pub all: bool,
}

impl FormatArgs {
    fn format(&self) -> PlanFormat {
        if self.json { PlanFormat::Json } else { self.format }
    }
}

impl CheckArgs {
    /// How to print.
    #[must_use]
    pub fn format(&self) -> CheckFormat {
        if self.json { CheckFormat::Json } else { self.format }
    }
}

/// What `--format` and `--json` come to.
macro_rules! formats {
    ($($args:ident)*) => {
        $(impl $args {
            /// How to print.
            #[must_use]
            pub fn format(&self) -> PlanFormat {
                self.print.format()
            }
        })*
    };
}

formats! { PlanArgs KeysArgs ExportArgs DiffArgs }

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
