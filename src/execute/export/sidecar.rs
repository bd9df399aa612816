//! The files beside the shards: copied, but for what a broken tie changes, and `surgery.json`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::ExportError;
use super::head::Head;
use crate::execute::Report;
use crate::plan::Plan;

const CONFIG: &str = "config.json";
const INDEX: &str = "model.safetensors.index.json";
const RECORD: &str = "surgery.json";

/// Other formats of the same weights, which would still be the old ones.
const WEIGHTS: [&str; 9] = ["safetensors", "bin", "pt", "pth", "gguf", "h5", "msgpack", "onnx", "npz"];

/// The surgery file's own name, without its directory.
pub(super) fn surgery_name(plan: &Plan) -> String {
    plan.file().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

/// Writes everything but the shards.
pub(super) fn write(
    plan: &Plan,
    folder: &Path,
    report: &Report,
    head: Option<&Head>,
) -> Result<(), ExportError> {
    let base = &plan.base().dir;
    copy_files(base, folder)?;
    if let Some(head) = head {
        untie(&folder.join(CONFIG), head)?;
        let index = folder.join(INDEX);
        if index.exists() {
            let shard = &plan.base().weights.shards[head.shard].path;
            list_head(&index, head, &shard.file_name().unwrap_or_default().to_string_lossy())?;
        }
    }
    if plan.programs().is_empty() {
        return Ok(());
    }
    let record = json!({
        "format_version": "1.0",
        "mlxcel": env!("CARGO_PKG_VERSION"),
        "surgery": surgery_name(plan),
        "base": base.file_name().unwrap_or_default().to_string_lossy(),
        "digest": plan.digest(),
        "report": report,
    });
    save(&folder.join(RECORD), &record)
}

/// Copies the top-level files that hold no weights; what a link leads to, not the link.
fn copy_files(base: &Path, folder: &Path) -> Result<(), ExportError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| ExportError::Copy { path, source }
    };
    for entry in fs::read_dir(base).map_err(unreadable(base))? {
        let from = entry.map_err(unreadable(base))?.path();
        let Some(name) = from.file_name() else { continue };
        let kind = fs::metadata(&from).map_err(unreadable(&from))?;
        let name_text = name.to_string_lossy();
        let holds_weights =
            from.extension().is_some_and(|ending| WEIGHTS.iter().any(|known| ending == *known))
                || (name_text.ends_with(".index.json") && name_text != INDEX);
        if kind.is_file() && !holds_weights {
            fs::copy(&from, folder.join(name)).map_err(unreadable(&from))?;
        }
    }
    Ok(())
}

/// Says in the config that the head is stored, and quantized as the embedding is.
fn untie(path: &Path, head: &Head) -> Result<(), ExportError> {
    let mut config = load(path)?;
    config["tie_word_embeddings"] = false.into();
    for part in ["text_config", "llm_config", "language_config"] {
        if let Some(tied) = config.get_mut(part).and_then(|part| part.get_mut("tie_word_embeddings")) {
            *tied = false.into();
        }
    }
    let stem = |key: &str| key.rsplit_once('.').map_or("", |(stem, _)| stem).to_owned();
    if let Some(member) = head.members.first() {
        let (embedding, head) = (stem(member.tied_to.as_str()), stem(member.key.as_str()));
        for section in ["quantization", "quantization_config"] {
            let Some(section) = config.get_mut(section).and_then(Value::as_object_mut) else { continue };
            for ending in ["", ".weight"] {
                if let Some(own) = section.get(&format!("{embedding}{ending}")).cloned() {
                    section.insert(format!("{head}{ending}"), own);
                }
            }
        }
    }
    save(path, &config)
}

/// Lists the head's tensors in the index file.
fn list_head(path: &Path, head: &Head, shard: &str) -> Result<(), ExportError> {
    let mut index = load(path)?;
    let mut bytes = 0;
    for member in &head.members {
        index["weight_map"][member.key.as_str()] = shard.into();
        bytes += member.range.end - member.range.start;
    }
    if let Some(total) = index.pointer_mut("/metadata/total_size")
        && let Some(known) = total.as_u64()
    {
        *total = (known + bytes).into();
    }
    save(path, &index)
}

fn load(path: &Path) -> Result<Value, ExportError> {
    let unreadable = |source| ExportError::Copy { path: path.to_owned(), source };
    let text = fs::read(path).map_err(unreadable)?;
    // The planner has read it as an object before.
    serde_json::from_slice(&text).map_err(|error| unreadable(error.into()))
}

fn save(path: &Path, value: &Value) -> Result<(), ExportError> {
    // A copy has its original's permissions, which may forbid writing; a new file has none of that.
    let _ = fs::remove_file(path);
    let mut text = format!("{value:#}");
    text.push('\n');
    fs::write(path, text).map_err(ExportError::write(path))
}
