//! [`Donor`]: a distinct source, opened once, by headers.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::say;
use crate::checkpoint::{
    INDEX_FILE, Key, ModelConfig, ReadError, ReadErrorKind, ReadWarning, TensorInfo, Weights, elsewhere,
    neighbour,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::{Kind, Operation, Spanned, SurgeryFile};

/// An opened donor.
#[derive(Debug)]
pub struct Donor {
    /// As written in the YAML (for messages, plans and JSON).
    pub written: String,
    /// Its files and tensors.
    pub weights: Weights,
    /// `config.json` of a donor directory that has one.
    pub config: Option<ModelConfig>,
}

impl Donor {
    /// The tensor that serves a key: the one of that name, or the embedding's where the head is not stored.
    /// Returns its position in the donor's index.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<(usize, &Key, &TensorInfo)> {
        let index = &self.weights.index;
        let position = index.position(key).or_else(|| {
            let rest = key.strip_prefix("lm_head.")?;
            let stored_head = index.position("lm_head.weight").is_some();
            if stored_head { None } else { index.position(&format!("model.embed_tokens.{rest}")) }
        })?;
        let (key, info) = index.entries().get(position)?;
        Some((position, key, info))
    }
}

/// The donors of a file: each distinct source opened once, failures reported once.
#[derive(Debug, Default)]
pub(super) struct Donors {
    /// The ones that opened, in the order of their first use.
    pub list: Vec<Donor>,
    /// Where each was first used.
    pub first_use: Vec<Spanned<PathBuf>>,
    /// From the path as resolved to its place in the list; `None` could not be opened (and was reported).
    by_path: HashMap<PathBuf, Option<usize>>,
    /// Why some could not be opened, and oddities of those that could.
    pub diagnostics: Vec<Diagnostic>,
}

impl Donors {
    /// Opens every donor that the operations name, in parallel, reading headers only.
    pub(super) fn open(file: &SurgeryFile) -> Self {
        // Two spellings of one file are one donor; what cannot be resolved is told apart by its spelling.
        let mut distinct: Vec<(PathBuf, Vec<&Spanned<PathBuf>>)> = Vec::new();
        let mut known: HashMap<PathBuf, usize> = HashMap::new();
        let of_fragments = file.fragments.iter().flat_map(|fragment| &fragment.sources);
        for source in file.operations.iter().flat_map(sources).chain(of_fragments) {
            let identity = identity(&source.value);
            let place = *known.entry(identity.clone()).or_insert_with(|| {
                distinct.push((identity, Vec::new()));
                distinct.len() - 1
            });
            distinct[place].1.push(source);
        }
        let opened: Vec<_> = distinct.par_iter().map(|(_, uses)| Weights::open(&uses[0].value)).collect();
        let mut donors = Self::default();
        for ((_, uses), opened) in distinct.into_iter().zip(opened) {
            donors.add(file, &uses, opened);
        }
        donors
    }

    fn add(
        &mut self,
        file: &SurgeryFile,
        uses: &[&Spanned<PathBuf>],
        opened: Result<Weights, Vec<ReadError>>,
    ) {
        let first = uses[0];
        let written = written(&file.dir, &first.value);
        let place = match opened {
            Ok(weights) => {
                for warning in &weights.warnings {
                    self.diagnostics.push(first.mark(oddity(warning), "in this donor"));
                }
                let config = match read_config(&first.value) {
                    Some(Err(error)) => {
                        self.diagnostics.push(first.mark(unread_config(&error, &written), ""));
                        None
                    }
                    Some(Ok(config)) => Some(config),
                    None => None,
                };
                self.list.push(Donor { written, weights, config });
                self.first_use.push(first.clone());
                Some(self.list.len() - 1)
            }
            Err(errors) => {
                for error in &errors {
                    let mut diagnostic = refusal(error, &first.value, &written, file);
                    for (i, source) in uses.iter().enumerate() {
                        diagnostic = source.mark(diagnostic, if i == 0 { "" } else { "and here" });
                    }
                    self.diagnostics.push(diagnostic);
                }
                None
            }
        };
        for source in uses {
            self.by_path.insert(source.value.clone(), place);
        }
    }

    /// Warns of donors that another framework wrote than the base.
    pub(super) fn formats(&self, base: Option<&str>) -> Vec<Diagnostic> {
        let Some(base) = base else { return Vec::new() };
        self.list
            .iter()
            .zip(&self.first_use)
            .filter_map(|(donor, source)| {
                let format = donor.weights.format.as_deref().filter(|format| *format != base)?;
                let message = format!("the base has format `{base}`, donor `{}` has `{format}`", donor.written);
                let diagnostic = Diagnostic::new(Code::DonorFormat, message).help(
                    "conversions may change values (some norms are stored as w and as 1 + w): convert both alike",
                );
                Some(source.mark(diagnostic, ""))
            })
            .collect()
    }

    /// Advises of donor tensors that no operation uses. Where most of a donor is left and nothing is added from it, a part
    /// was chosen, and the rest need not be named.
    pub(super) fn unreached<'r>(
        &self,
        operations: &[Operation],
        reached: impl Iterator<Item = &'r (usize, usize)>,
    ) -> Vec<Diagnostic> {
        let mut used: Vec<Vec<bool>> =
            self.list.iter().map(|donor| vec![false; donor.weights.index.entries().len()]).collect();
        for &(donor, position) in reached {
            used[donor][position] = true;
        }
        let added = operations.iter().filter_map(|operation| match &operation.kind {
            Kind::Add { source, .. } => self.get(source).map(|(place, _)| place),
            _ => None,
        });
        let added: HashSet<usize> = added.collect();
        let donors = self.list.iter().zip(&self.first_use).zip(used).enumerate();
        donors
            .filter_map(|(place, ((donor, source), used))| {
                let all = used.len();
                let entries = donor.weights.index.entries().iter().zip(used);
                let left: Vec<&str> =
                    entries.filter(|(_, used)| !used).map(|((key, _), _)| key.as_str()).collect();
                if left.is_empty() {
                    return None;
                }
                let (message, help) = if left.len() * 2 > all && !added.contains(&place) {
                    let message = format!(
                        "{} of the {all} tensors of donor `{}` {} used",
                        all - left.len(),
                        donor.written,
                        if all - left.len() == 1 { "is" } else { "are" },
                    );
                    (message, "nothing to do, if the others were left out on purpose")
                } else {
                    let message = format!(
                        "{} of donor `{}` {} reached by no pattern: {}",
                        say::count(left.len(), "tensor"),
                        donor.written,
                        if left.len() == 1 { "is" } else { "are" },
                        say::names(&left),
                    );
                    (message, "widen a pattern if they were meant to be used")
                };
                Some(source.mark(Diagnostic::new(Code::UnreachedDonor, message).help(help), ""))
            })
            .collect()
    }

    /// The donor of a source; `None` where it could not be opened, which has been reported.
    pub(super) fn get(&self, source: &Spanned<PathBuf>) -> Option<(usize, &Donor)> {
        let place = (*self.by_path.get(&source.value)?)?;
        Some((place, self.list.get(place)?))
    }
}

/// What two spellings of one donor have in common. A directory with an index file is what its index file says.
fn identity(source: &Path) -> PathBuf {
    let path =
        match (source.file_name(), source.parent()) {
            (Some(name), Some(dir)) if name == INDEX_FILE && source.is_file() => {
                if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
            }
            _ => source,
        };
    path.canonicalize().unwrap_or_else(|_| source.to_owned())
}

/// The donors that an operation names, in the order of its fields.
pub(super) fn sources(operation: &Operation) -> impl Iterator<Item = &Spanned<PathBuf>> {
    let (first, second) = match &operation.kind {
        Kind::Scale { .. } | Kind::Prune { .. } => (None, None),
        Kind::Add { source, .. } | Kind::Replace { source, .. } => (Some(source), None),
        Kind::Interpolate { source_a, source_b, .. } => (Some(source_a), Some(source_b)),
    };
    first.into_iter().chain(second)
}

/// A donor's path as the file has it: without the directory that it was resolved against.
fn written(dir: &Path, resolved: &Path) -> String {
    let written = if dir.as_os_str().is_empty() { Ok(resolved) } else { resolved.strip_prefix(dir) };
    written.unwrap_or(resolved).display().to_string()
}

/// `config.json` beside the weights of a donor directory (or its index file), where it is readable.
#[must_use]
pub fn config_beside(path: &Path) -> Option<ModelConfig> {
    read_config(path)?.ok()
}

/// The same, or why it cannot be read; `None` where there is none.
fn read_config(path: &Path) -> Option<Result<ModelConfig, ReadError>> {
    let dir = if path.is_dir() {
        path
    } else if path.extension().is_some_and(|e| e == "json") {
        path.parent()?
    } else {
        return None;
    };
    let read = ModelConfig::read(&dir.join("config.json"));
    (!matches!(&read, Err(error) if error.kind == ReadErrorKind::NotFound)).then_some(read)
}

/// A donor goes without its configuration, but then nothing says how it is quantized.
fn unread_config(error: &ReadError, written: &str) -> Diagnostic {
    let message = format!("`config.json` of donor `{written}` cannot be read: {}", error.reason);
    Diagnostic::new(Code::DonorConfig, message).help(
        "bits and group size of the donor are not compared with the base's: repair the file, or remove it if the donor \
         is not quantized",
    )
}

fn refusal(error: &ReadError, source: &Path, written: &str, file: &SurgeryFile) -> Diagnostic {
    match error.kind {
        ReadErrorKind::NotFound if error.path == source && !source.is_symlink() => {
            let mut help = neighbour(source).map_or_else(String::new, |near| format!("{near} "));
            help.push_str("relative donors are resolved against the directory of the surgery file");
            if file.dir.as_os_str().is_empty() {
                help.push_str(", `.`");
            } else if source.starts_with(&file.dir) {
                let _ = write!(help, ": this one is `{}`", source.display());
            }
            if written.starts_with('~') || written.contains('$') {
                help.push_str("; `~` and `$VAR` are not expanded: write the path out");
            } else if let Some(elsewhere) = elsewhere(Path::new(written)) {
                let _ = write!(help, "; {elsewhere}");
            }
            Diagnostic::new(Code::DonorNotFound, format!("donor `{written}` does not exist")).help(help)
        }
        ReadErrorKind::NotFound if error.path == source => with_help(Code::DonorNotFound, error),
        ReadErrorKind::NotFound | ReadErrorKind::Unreadable => with_help(Code::DonorUnreadable, error),
        ReadErrorKind::BadIndex => with_help(Code::BadShardIndex, error),
    }
}

/// A refusal of weights that were named outside of a surgery file.
pub(super) fn named_refusal(path: &Path, error: &ReadError) -> Diagnostic {
    let code = match error.kind {
        ReadErrorKind::NotFound if error.path == path => Code::DonorNotFound,
        ReadErrorKind::NotFound | ReadErrorKind::Unreadable => Code::DonorUnreadable,
        ReadErrorKind::BadIndex => Code::BadShardIndex,
    };
    with_help(code, error)
}

/// A refusal of the base, as a diagnostic without a place in the YAML.
pub(super) fn base_refusal(error: &ReadError) -> Diagnostic {
    let code = match error.kind {
        ReadErrorKind::NotFound | ReadErrorKind::Unreadable => Code::ModelUnreadable,
        ReadErrorKind::BadIndex => Code::BadShardIndex,
    };
    with_help(code, error)
}

fn with_help(code: Code, error: &ReadError) -> Diagnostic {
    let diagnostic = Diagnostic::new(code, error.to_string());
    match &error.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}

/// An oddity of a checkpoint, as a warning.
pub(super) fn oddity(warning: &ReadWarning) -> Diagnostic {
    match warning {
        ReadWarning::UnlistedTensor { path, key } => Diagnostic::new(
            Code::UnlistedTensor,
            format!("`{}` holds `{key}`, which the index file does not list", path.display()),
        )
        .help("it is used; list it in the index file, or remove it from the shard"),
        ReadWarning::TrailingBytes { path, bytes } => Diagnostic::new(
            Code::TrailingBytes,
            format!("{} after the last tensor of `{}`", follow(*bytes), path.display()),
        )
        .help("they are ignored; if the file was written twice or joined with another, write it anew"),
    }
}

fn follow(bytes: u64) -> String {
    if bytes == 1 { "1 byte follows".into() } else { format!("{bytes} bytes follow") }
}
