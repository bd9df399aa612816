//! [`Donor`]: a distinct source, opened once, by headers.

mod oddity;
mod refusal;

pub(super) use oddity::oddity;
pub(super) use refusal::{base_refusal, named_refusal};

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::ids::DonorId;
use crate::checkpoint::{
    INDEX_FILE, Key, ModelConfig, ReadError, ReadErrorKind, TensorId, TensorInfo, Weights,
};
use crate::diagnostic::Diagnostic;
use crate::surgery::{Operation, Spanned, SurgeryFile};
use refusal::{refusal, unread_config};

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
    /// The tensor for a key: the one of that name, or the embedding's if the head is not stored; with its position in the
    /// donor's index.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<(TensorId, &Key, &TensorInfo)> {
        let index = &self.weights.index;
        let position = index.position(key).or_else(|| {
            let rest = key.strip_prefix("lm_head.")?;
            let stored_head = index.position("lm_head.weight").is_some();
            if stored_head { None } else { index.position(&format!("model.embed_tokens.{rest}")) }
        })?;
        let (key, info) = &index[position];
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
    by_path: HashMap<PathBuf, Option<DonorId>>,
    /// Why donors could not be opened, and oddities of those that were.
    pub diagnostics: Vec<Diagnostic>,
}

impl Donors {
    /// Opens every donor that the operations name, in parallel, reading headers only.
    pub(super) fn open(file: &SurgeryFile) -> Self {
        // Two spellings of one file are one donor; paths that cannot be resolved are distinguished by their spelling.
        let mut distinct: Vec<(PathBuf, Vec<&Spanned<PathBuf>>)> = Vec::new();
        let mut known: HashMap<PathBuf, usize> = HashMap::new();
        let of_fragments = file.fragments.iter().flat_map(|fragment| &fragment.sources);
        for source in file.operations.iter().flat_map(Operation::sources).chain(of_fragments) {
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
                    self.diagnostics.push(first.label_at_use(oddity(warning), "in this donor"));
                }
                let config = match read_config(&first.value) {
                    Some(Err(error)) => {
                        self.diagnostics.push(first.label_at_use(unread_config(&error, &written), ""));
                        None
                    }
                    Some(Ok(config)) => Some(config),
                    None => None,
                };
                self.list.push(Donor { written, weights, config });
                self.first_use.push(first.clone());
                Some(DonorId::new(self.list.len() - 1))
            }
            Err(errors) => {
                for error in &errors {
                    let mut diagnostic = refusal(error, &first.value, &written, file);
                    for (i, source) in uses.iter().enumerate() {
                        diagnostic = source.label_at_use(diagnostic, if i == 0 { "" } else { "and here" });
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

    /// The donor of a source; `None` where it could not be opened, which has been reported.
    pub(super) fn get(&self, source: &Spanned<PathBuf>) -> Option<(DonorId, &Donor)> {
        let place = (*self.by_path.get(&source.value)?)?;
        Some((place, self.list.get(place.position())?))
    }
}

/// The path that all spellings of one donor resolve to. An index file means its directory.
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

/// A donor's path as the file has it: without the directory that it was resolved against.
fn written(dir: &Path, resolved: &Path) -> String {
    let written = if dir.as_os_str().is_empty() { Ok(resolved) } else { resolved.strip_prefix(dir) };
    written.unwrap_or(resolved).display().to_string()
}

/// `config.json` beside the weights of a donor directory (or its index file), where it is readable.
#[must_use]
pub(crate) fn config_beside(path: &Path) -> Option<ModelConfig> {
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
