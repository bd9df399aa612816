//! The files beside the shards: copies, changed where a tie is broken, and `surgery.json`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::files::create;
use super::head::Head;
use super::{ExportError, Stop, splice};
use crate::checkpoint::{Fingerprint, ModelConfig, TextConfig};
use crate::execute::{ExecuteError, Report};
use crate::plan::{FORMAT_VERSION, Plan};

const CONFIG: &str = "config.json";
const INDEX: &str = "model.safetensors.index.json";
const RECORD: &str = "surgery.json";

/// Extensions of weights in other formats. They are not copied: they would not be edited.
const WEIGHTS: [&str; 9] = ["safetensors", "bin", "pt", "pth", "gguf", "h5", "msgpack", "onnx", "npz"];

/// The surgery file's name without its directory.
pub(super) fn surgery_name(plan: &Plan) -> String {
    plan.file().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

/// The files that are copied along with the weights.
#[derive(Debug)]
pub(super) struct Sidecars {
    files: Vec<Sidecar>,
}

/// A file as it was when the export began.
#[derive(Debug)]
struct Sidecar {
    path: PathBuf,
    fingerprint: Fingerprint,
    /// Its permissions, without setuid, setgid and the sticky bit.
    mode: u32,
}

impl Sidecars {
    /// The top-level files without weights. Links are followed.
    pub(super) fn of(plan: &Plan) -> Result<Self, ExportError> {
        let base = plan.base();
        let mut files = Vec::new();
        for entry in fs::read_dir(&base.dir).map_err(ExportError::unreadable(&base.dir))? {
            let path = entry.map_err(ExportError::unreadable(&base.dir))?.path();
            let metadata = fs::metadata(&path).map_err(|error| unreadable(&path, error))?;
            if metadata.is_file() && !holds_weights(&path) {
                let mode = metadata.mode() & 0o777;
                files.push(Sidecar { path, fingerprint: Fingerprint::of(&metadata), mode });
            }
        }
        // The plan is only valid for the configuration that it was made with.
        let config = base.dir.join(CONFIG);
        match ModelConfig::read(&config) {
            Ok(now) if now.json == base.config.json => Ok(Self { files }),
            _ => Err(ExecuteError::Changed { path: config }.into()),
        }
    }

    /// Size of all of them, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.fingerprint.len).sum()
    }

    /// Writes everything but the shards.
    pub(super) fn write(
        &self,
        plan: &Plan,
        folder: &Path,
        report: &Report,
        head: Option<&Head>,
        stop: &Stop,
    ) -> Result<(), ExportError> {
        self.copy(folder, stop)?;
        if let Some(head) = head {
            change(&folder.join(CONFIG), |text| untie(text, head))?;
            let index = folder.join(INDEX);
            if index.exists() {
                let shard = &plan.base().weights.shards[head.shard].path;
                let shard = shard.file_name().unwrap_or_default().to_string_lossy();
                change(&index, |text| list_head(text, head, &shard))?;
            }
        }
        if plan.programs().is_empty() {
            return Ok(());
        }
        let record = json!({
            "format_version": FORMAT_VERSION,
            "mlxcel": env!("CARGO_PKG_VERSION"),
            "surgery": surgery_name(plan),
            "base": plan.base().dir.file_name().unwrap_or_default().to_string_lossy(),
            "digest": plan.digest(),
            "report": report,
        });
        save(&folder.join(RECORD), &record)
    }

    /// Copies the files, and checks that they have not changed.
    fn copy(&self, folder: &Path, stop: &Stop) -> Result<(), ExportError> {
        for Sidecar { path, fingerprint, mode } in &self.files {
            let changed = || ExportError::from(ExecuteError::Changed { path: path.clone() });
            let to = folder.join(path.file_name().unwrap_or_default());
            let mut source = File::open(path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => changed(),
                _ => ExportError::unreadable(path)(error),
            })?;
            let mut target = create(&to, *mode).map_err(ExportError::write(&to))?;
            copy_bytes((&mut source, path), (&mut target, &to), stop)?;
            let metadata = source.metadata().map_err(ExportError::unreadable(path))?;
            let named = fs::metadata(path).map_err(|_| changed())?;
            if [metadata, named].iter().any(|now| Fingerprint::of(now) != *fingerprint) {
                return Err(changed());
            }
        }
        Ok(())
    }
}

/// Names the target of a broken link.
fn unreadable(path: &Path, error: io::Error) -> ExportError {
    match path.read_link() {
        Ok(target) if error.kind() == io::ErrorKind::NotFound => {
            ExportError::Dangling { path: path.to_owned(), target }
        }
        _ => ExportError::unreadable(path)(error),
    }
}

/// Copies bytes; the error says which side failed.
fn copy_bytes(
    (source, from): (&mut File, &Path),
    (target, to): (&mut File, &Path),
    stop: &Stop,
) -> Result<(), ExportError> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        stop.check()?;
        let n = match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(ExportError::unreadable(from)(error)),
        };
        target.write_all(&buffer[..n]).map_err(ExportError::write(to))?;
    }
}

fn holds_weights(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.extension().is_some_and(|ending| WEIGHTS.iter().any(|known| ending == *known))
        || (name.ends_with(".index.json") && name != INDEX)
}

/// Records in the config that the head is stored, with the embedding's quantization.
fn untie(text: &mut String, head: &Head) -> bool {
    const TIED: &str = "tie_word_embeddings";
    for place in TextConfig::PLACES {
        if splice::find(text, &[place, &[TIED]].concat()).is_some() {
            splice::set(text, place, TIED, "false");
        }
    }
    let stem = |key: &str| key.rsplit_once('.').map_or("", |(stem, _)| stem).to_owned();
    if let Some(member) = head.members.first() {
        let (embedding, head) = (stem(member.tied_to.as_str()), stem(member.key.as_str()));
        for section in ["quantization", "quantization_config"] {
            for ending in ["", ".weight"] {
                let own = splice::find(text, &[section, &format!("{embedding}{ending}")]).map(str::to_owned);
                if let Some(own) = own {
                    splice::set(text, &[section], &format!("{head}{ending}"), &own);
                }
            }
        }
    }
    splice::set(text, &[], TIED, "false")
}

/// Lists the head's tensors in the index file.
fn list_head(text: &mut String, head: &Head, shard: &str) -> bool {
    const TOTAL: [&str; 2] = ["metadata", "total_size"];
    let shard = Value::from(shard).to_string();
    let listed =
        head.members.iter().all(|member| splice::set(text, &["weight_map"], member.key.as_str(), &shard));
    let bytes: u64 = head.members.iter().map(|member| member.range.end - member.range.start).sum();
    // Some programs write it as a float.
    let total = splice::find(text, &TOTAL).map(|total| total.strip_suffix(".0").unwrap_or(total));
    if let Some(total) = total.and_then(|total| total.parse::<u64>().ok()?.checked_add(bytes)) {
        splice::set(text, &TOTAL[..1], TOTAL[1], &total.to_string());
    }
    listed
}

/// Changes a copied file, which the planner has read before. Replaces it, because its mode may forbid writing.
fn change(path: &Path, change: impl FnOnce(&mut String) -> bool) -> Result<(), ExportError> {
    let mut text = fs::read_to_string(path).map_err(ExportError::unreadable(path))?;
    let mode = fs::metadata(path).map_err(ExportError::unreadable(path))?.mode() & 0o777;
    if !change(&mut text) {
        return Err(ExportError::unreadable(path)(io::ErrorKind::InvalidData.into()));
    }
    fs::remove_file(path)
        .and_then(|()| create(path, mode))
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(ExportError::write(path))
}

fn save(path: &Path, value: &Value) -> Result<(), ExportError> {
    let mut text = format!("{value:#}");
    text.push('\n');
    fs::write(path, text).map_err(ExportError::write(path))
}
