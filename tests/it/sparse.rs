//! Sparse checkpoints: real headers and no bytes behind them, made from the lists in `fixtures/headers`.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// A folder of the repository's `fixtures`.
pub(crate) fn fixtures(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder)
}

/// The header list of a fixture checkpoint.
pub(crate) fn list(model: &str) -> String {
    let path = fixtures("headers").join(model).join("headers.txt");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Makes the fixture checkpoint `model` in the new directory `dir`: one shard and its `config.json`.
pub(crate) fn checkpoint(model: &str, dir: &Path) {
    fs::create_dir_all(dir).expect("a directory can be made");
    write(&dir.join("model.safetensors"), &list(model));
    let config = fixtures("headers").join(model).join("config.json");
    fs::copy(config, dir.join("config.json")).expect("config.json can be copied");
}

/// Writes a sparse `.safetensors` file with the tensors of a header list.
pub(crate) fn write(path: &Path, list: &str) {
    let mut header = Map::new();
    header.insert("__metadata__".to_owned(), json!({ "format": "pt" }));
    let mut end = 0;
    for line in list.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [key, dtype, shape] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("a header line: {line}")
        };
        let shape: Vec<u64> = match shape {
            "-" => Vec::new(),
            sizes => sizes.split(',').map(|size| size.parse().expect("a size")).collect(),
        };
        let bytes = shape.iter().product::<u64>() * width(dtype);
        for key in expand(key) {
            let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": [end, end + bytes] });
            header.insert(key, entry);
            end += bytes;
        }
    }
    let mut text = Value::from(header).to_string();
    while text.len() % 8 != 0 {
        text.push(' ');
    }
    fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("a directory can be made");
    let mut file = File::create(path).expect("a file can be made");
    let length = text.len() as u64;
    file.write_all(&length.to_le_bytes())
        .and_then(|()| file.write_all(text.as_bytes()))
        .expect("a header can be written");
    file.set_len(8 + length + end).expect("a file can have a hole");
}

fn width(dtype: &str) -> u64 {
    match dtype {
        "U8" | "I8" | "BOOL" | "F8_E4M3" => 1,
        "BF16" | "F16" => 2,
        "F32" | "U32" | "I32" => 4,
        "I64" | "F64" => 8,
        other => panic!("a dtype: {other}"),
    }
}

/// `a.{0..2}.b` as `a.0.b`, `a.1.b`, `a.2.b`, for any number of braces.
fn expand(key: &str) -> Vec<String> {
    let Some((before, rest)) = key.split_once('{') else { return vec![key.to_owned()] };
    let (range, after) = rest.split_once('}').expect("a brace is closed");
    let (first, last) = range.split_once("..").expect("a range");
    let numbers = first.parse::<u64>().expect("a number")..=last.parse::<u64>().expect("a number");
    let tails = expand(after);
    numbers.flat_map(|number| tails.iter().map(move |tail| format!("{before}{number}{tail}"))).collect()
}
