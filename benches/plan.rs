//! The time to open a checkpoint and to plan on it, and how both grow with tensors and operations.
//! `cargo bench --no-default-features --bench plan`.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::cast_precision_loss, reason = "figures are printed to three digits")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use mlxcel::{Checkpoint, SurgeryFile, plan};

/// Number of runs; the fastest counts, because disturbances only slow a run down.
const RUNS: usize = 9;

fn main() {
    let folder = tempfile::tempdir().expect("there is room for headers");
    println!("{:36} {:>10} {:>10} {:>10} {:>12}", "", "opening", "planning", "together", "ns a match");
    for (name, layers, experts, shards) in
        [("a", 90, 0, 1), ("b", 90, 8, 1), ("c", 90, 64, 20), ("d", 96, 868, 280)]
    {
        let model = folder.path().join(name);
        let tensors = prepare(&model, layers, experts, shards);
        for count in [5, 20] {
            let file = surgery(&model, layers, experts, count);
            measure(&format!("{tensors} tensors, {count} operations"), &model, &file);
        }
    }
    let model = folder.path().join("e");
    let tensors = prepare(&model, 4, 0, 1);
    let many = operations(&model, (0..20_000).map(|n| format!("op: scale, pattern: '*', factor: {n}.5")));
    measure(&format!("{tensors} tensors, 20,000 operations on all"), &model, &many);
}

fn measure(name: &str, model: &Path, file: &SurgeryFile) {
    let (opening, planning) = best(model, file);
    let base = Checkpoint::open(model).expect("a good checkpoint");
    let plan = plan(file, base).expect("a good file");
    let matched: usize = plan.steps().iter().map(|step| step.matched).sum();
    println!(
        "{name:36} {:>10} {:>10} {:>10} {:12.0}",
        shown(opening),
        shown(planning),
        shown(opening + planning),
        planning.as_secs_f64() * 1e9 / matched as f64
    );
}

/// The shortest opening and the shortest planning.
fn best(model: &Path, file: &SurgeryFile) -> (Duration, Duration) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..RUNS {
        let start = Instant::now();
        let base = Checkpoint::open(model).expect("a good checkpoint");
        let opened = start.elapsed();
        let planned = plan(file, base);
        best = (best.0.min(opened), best.1.min(start.elapsed().saturating_sub(opened)));
        drop(planned);
    }
    best
}

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Typical operations: each on a few layers, half of the file on everything but experts.
fn surgery(model: &Path, layers: usize, experts: usize, count: usize) -> SurgeryFile {
    let expert = if experts == 0 { "mlp" } else { "mlp.experts.*" };
    operations(
        model,
        (0..count).map(|n| match n % 5 {
            0 => format!(
                "op: scale, pattern: 'model.layers.{}.{expert}.down_proj.weight', factor: 1.5",
                n % layers
            ),
            1 => format!("op: prune, granularity: layer, pattern: '*.self_attn.*', layer_ids: [{n}]"),
            2 => format!(
                "op: prune, granularity: attention_head, pattern: '*.{{q,o}}_proj.weight', head_ids: [{n}]"
            ),
            3 => format!("op: scale, pattern: '*.layers.{{{n}..{}}}.{expert}.*', factor: 0.5", n + 2),
            _ => format!("op: scale, pattern: '*norm.weight', factor: 1.{n}"),
        }),
    )
}

fn operations(model: &Path, operations: impl Iterator<Item = String>) -> SurgeryFile {
    let mut text = String::from("version: 1\noperations:\n");
    operations.for_each(|operation| text.extend(["  - {", &operation, "}\n"]));
    SurgeryFile::parse(&model.join("surgery.yaml"), text.as_bytes())
}

/// Headers of a model, with an index file where there are several shards. Returns the number of tensors.
fn prepare(model: &Path, layers: usize, experts: usize, shards: usize) -> usize {
    fs::create_dir_all(model).expect("a folder");
    let config = r#"{"model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 8}"#;
    fs::write(model.join("config.json"), config).expect("a file");
    let keys: Vec<(String, [u64; 2])> = (0..layers).flat_map(|layer| layer_keys(layer, experts)).collect();
    let mut map = serde_json::Map::new();
    for (at, keys) in keys.chunks(keys.len().div_ceil(shards)).enumerate() {
        let name = format!("model-{:05}-of-{shards:05}.safetensors", at + 1);
        map.extend(keys.iter().map(|(key, _)| (key.clone(), name.clone().into())));
        write(&model.join(&name), keys);
    }
    if shards > 1 {
        map.sort_keys();
        let index = serde_json::json!({ "weight_map": map });
        fs::write(model.join("model.safetensors.index.json"), index.to_string()).expect("a file");
    }
    keys.len()
}

fn layer_keys(layer: usize, experts: usize) -> Vec<(String, [u64; 2])> {
    let attention = [("q", [4096, 2048]), ("k", [1024, 2048]), ("v", [1024, 2048]), ("o", [2048, 4096])];
    let projections = [("gate", [768, 2048]), ("up", [768, 2048]), ("down", [2048, 768])];
    let mut keys: Vec<_> = ["input", "post_attention"]
        .map(|norm| (format!("model.layers.{layer}.{norm}_layernorm.weight"), [1, 2048]))
        .into();
    keys.extend(
        attention.map(|(name, shape)| (format!("model.layers.{layer}.self_attn.{name}_proj.weight"), shape)),
    );
    let parents: Vec<String> = match experts {
        0 => vec!["mlp".to_owned()],
        _ => (0..experts).map(|expert| format!("mlp.experts.{expert}")).collect(),
    };
    for parent in parents {
        let key = |name| format!("model.layers.{layer}.{parent}.{name}_proj.weight");
        keys.extend(projections.map(|(name, shape)| (key(name), shape)));
    }
    keys
}

/// A sparse file: the header is there, the weights take no room.
fn write(path: &Path, keys: &[(String, [u64; 2])]) {
    let mut header = String::from("{\"__metadata__\":{\"format\":\"mlx\"}");
    let mut end = 0;
    for (key, [rows, columns]) in keys {
        let start = end;
        end += rows * columns * 2;
        let _ = write!(
            header,
            r#","{key}":{{"dtype":"BF16","shape":[{rows},{columns}],"data_offsets":[{start},{end}]}}"#
        );
    }
    header.push('}');
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    fs::write(path, &bytes).expect("a file");
    let file = File::options().write(true).open(path).expect("the file");
    file.set_len(bytes.len() as u64 + end).expect("a sparse file");
}
