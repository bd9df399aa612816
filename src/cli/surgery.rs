//! `mlxcel surgery …`: clap types only.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use crate::diagnostic::Code;

/// `mlxcel surgery …`.
#[derive(Debug, Subcommand)]
pub(crate) enum SurgeryCommand {
    /// Show what a surgery file would do to a model
    Plan(PlanArgs),
    /// Validate surgery files, for CI
    Check(CheckArgs),
    /// List the tensor keys of a model that patterns match
    Keys(KeysArgs),
    /// Write the edited checkpoint to disk
    Export(ExportArgs),
    /// Compare two checkpoints, or a model before and after surgery
    ///
    /// The exit code is 0 if both could be compared, whether or not they differ, and 1 if not.
    Diff(DiffArgs),
    /// Explain a diagnostic code
    Explain(ExplainArgs),
    /// Print the JSON Schema of surgery files, for editors
    Schema,
}

/// `mlxcel surgery plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Surgery file (YAML)
    pub(crate) file: PathBuf,
    /// Model directory
    #[arg(long, short = 'm', value_name = "DIR")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    print: FormatArgs,
    /// List every tensor instead of folding by layer
    #[arg(long)]
    pub(crate) all: bool,
    /// Treat warnings as errors
    #[arg(long, value_name = "KIND")]
    pub(crate) deny: Option<Deny>,
}

/// The output format of most commands. Its uses have no doc comment: clap would show that as help.
#[derive(Debug, Args)]
struct FormatArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Output formats of all commands but `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Human-readable
    Text,
    /// JSON
    Json,
}

/// The values of `--deny`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deny {
    /// Warnings fail the run; notes do not
    Warnings,
}

/// `mlxcel surgery check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Surgery files (YAML)
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Model directory to check patterns, shapes and dtypes against
    #[arg(long, short = 'm', value_name = "DIR")]
    pub(crate) model: Option<PathBuf>,
    /// Do not open donors; they may be absent
    #[arg(long)]
    pub(crate) no_donors: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    format: CheckFormat,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Treat warnings as errors
    #[arg(long, value_name = "KIND")]
    pub(crate) deny: Option<Deny>,
}

/// Output formats of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Human-readable
    Text,
    /// JSON
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitHub workflow commands, shown as annotations
    Github,
}

/// `mlxcel surgery keys`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("of").required(true))]
pub(crate) struct KeysArgs {
    /// Pattern that the keys must match
    pub(crate) pattern: Option<String>,
    /// Model directory
    #[arg(long, short = 'm', value_name = "DIR", group = "of")]
    pub(crate) model: Option<PathBuf>,
    /// List a donor's keys as stored: a .safetensors file, a directory or an index file
    #[arg(long, value_name = "PATH", group = "of")]
    pub(crate) donor: Option<PathBuf>,
    #[command(flatten)]
    print: FormatArgs,
}

/// `mlxcel surgery export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Surgery file (YAML)
    pub(crate) file: PathBuf,
    /// Model directory
    #[arg(long, short = 'm', value_name = "DIR")]
    pub(crate) model: PathBuf,
    /// Directory to write; it must not exist
    #[arg(long, short, value_name = "NEW")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    print: FormatArgs,
    /// Treat warnings as errors and write nothing if there are any
    #[arg(long, value_name = "KIND")]
    pub(crate) deny: Option<Deny>,
}

/// `mlxcel surgery diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Model directory or weights
    pub(crate) first: PathBuf,
    /// Weights to compare with: a directory, a .safetensors file or an index file
    #[arg(required_unless_present = "surgery", conflicts_with = "surgery")]
    pub(crate) second: Option<PathBuf>,
    /// Compare the model before and after this surgery file (YAML)
    #[arg(long, value_name = "FILE")]
    pub(crate) surgery: Option<PathBuf>,
    #[command(flatten)]
    print: FormatArgs,
    /// List every tensor instead of folding by layer
    #[arg(long)]
    pub(crate) all: bool,
}

impl FormatArgs {
    fn format(&self) -> OutputFormat {
        if self.json { OutputFormat::Json } else { self.format }
    }
}

impl CheckArgs {
    /// The chosen output format.
    #[must_use]
    pub(crate) fn format(&self) -> CheckFormat {
        if self.json { CheckFormat::Json } else { self.format }
    }
}

/// The chosen output format.
macro_rules! formats {
    ($($args:ident)*) => {
        $(impl $args {
            /// The chosen output format.
            #[must_use]
            pub(crate) fn format(&self) -> OutputFormat {
                self.print.format()
            }
        })*
    };
}

formats! { PlanArgs KeysArgs ExportArgs DiffArgs }

/// `mlxcel surgery explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Code, such as `no_match` or `surgery::no_match`; without one, all codes are listed
    #[arg(conflicts_with = "all", value_parser = Codes, hide_possible_values = true)]
    pub(crate) code: Option<String>,
    /// List all codes by severity
    #[arg(long)]
    pub(crate) all: bool,
}

/// Accepts any text and offers the codes for completion.
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
