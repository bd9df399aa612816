//! The speed of reading headers in MB/s, beside that of the `safetensors` crate in the same run, and the time to open a
//! checkpoint of 250,000 tensors in 280 shards. `cargo bench --no-default-features --bench headers`.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::cast_precision_loss, reason = "speeds are printed to three digits")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use mlxcel::Checkpoint;
use mlxcel::internals::checkpoint::Header;
use safetensors::tensor::Metadata;

/// Number of runs; the fastest counts, because disturbances only slow a run down.
const RUNS: usize = 15;
/// Bytes of one tensor, an expert's projection.
const BYTES: u64 = 2048 * 768 * 2;

fn main() {
    for tensors in [300, 20_000] {
        let header = header(0..tensors);
        let end = 8 + header.len() as u64 + tensors * BYTES;
        let ours =
            best(|| drop(Header::parse(&header, 8 + header.len() as u64, end).expect("a good header")));
        let theirs = best(|| drop(serde_json::from_str::<Metadata>(&header).expect("a good header")));
        let speed = |time: Duration| header.len() as f64 / 1e6 / time.as_secs_f64();
        println!(
            "a header of {tensors:6} tensors: {:4.0} MB/s, the safetensors crate {:4.0} MB/s",
            speed(ours),
            speed(theirs)
        );
    }
    let folder = tempfile::tempdir().expect("there is room for headers");
    prepare(folder.path(), 280, 893);
    let time = best(|| drop(Checkpoint::open(folder.path()).expect("a good checkpoint")));
    println!("280 shards of 893 tensors, with an index file: opened in {:.0} ms", time.as_secs_f64() * 1e3);
}

fn best(mut run: impl FnMut()) -> Duration {
    let mut once = || {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..RUNS).map(|_| once()).min().unwrap_or_default()
}

fn key(n: u64) -> String {
    let projection = ["down", "gate", "up"][(n % 3) as usize];
    format!("model.layers.{}.mlp.experts.{}.{projection}_proj.weight", n / 4000, n % 4000 / 3)
}

fn header(tensors: std::ops::Range<u64>) -> String {
    let mut text = String::from("{\"__metadata__\":{\"format\":\"mlx\"}");
    for (place, n) in tensors.enumerate() {
        let start = place as u64 * BYTES;
        let (key, end) = (key(n), start + BYTES);
        let _ =
            write!(text, r#","{key}":{{"dtype":"BF16","shape":[2048,768],"data_offsets":[{start},{end}]}}"#);
    }
    text + "}"
}

/// Sparse files: the headers are there, the weights take no room.
fn prepare(folder: &Path, shards: u64, each: u64) {
    let mut map = serde_json::Map::new();
    for shard in 0..shards {
        let name = format!("model-{:05}-of-{shards:05}.safetensors", shard + 1);
        let tensors = shard * each..(shard + 1) * each;
        map.extend(tensors.clone().map(|n| (key(n), name.clone().into())));
        let header = header(tensors);
        let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
        fs::write(folder.join(&name), &bytes).expect("a file");
        let file = File::options().write(true).open(folder.join(&name)).expect("the file");
        file.set_len(bytes.len() as u64 + each * BYTES).expect("a sparse file");
    }
    map.sort_keys();
    let index = serde_json::json!({ "weight_map": map });
    fs::write(folder.join("model.safetensors.index.json"), index.to_string()).expect("a file");
    fs::write(folder.join("config.json"), "{}").expect("a file");
}
