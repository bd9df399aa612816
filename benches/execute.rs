//! How near executing comes to the speed of memory: each program's bytes a second as a part of what a plain parallel
//! copy reaches in the same run. `cargo bench --no-default-features --bench execute`.

#![expect(clippy::print_stdout, reason = "its figures are for people")]
#![expect(clippy::cast_precision_loss, reason = "figures are shown with three digits")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use half::{bf16, f16};
use mlxcel::checkpoint::Dtype;
use mlxcel::execute::Executor;
use mlxcel::plan::{Plan, plan};
use mlxcel::{Checkpoint, SurgeryFile};
use rayon::prelude::*;
use safetensors::tensor::TensorView;

/// Rows and columns of the tensor.
const SHAPE: [usize; 2] = [16_384, 2_048];
const ELEMENTS: usize = SHAPE[0] * SHAPE[1];
/// The best of so many runs counts: what disturbs a run only ever slows it down.
const RUNS: usize = 9;

/// A program: its name, the donors it has, the bytes it reads and writes an element and byte of width, its operation.
const PROGRAMS: [(&str, usize, &str); 6] = [
    ("scale", 2, "{op: scale, pattern: '*', factor: 1.1}"),
    ("add", 3, "{op: add, pattern: '*', source: a.safetensors, alpha: 0.5}"),
    (
        "lerp",
        3,
        "{op: interpolate, pattern: '*', source_a: a.safetensors, source_b: b.safetensors, ratio: 0.3, method: lerp}",
    ),
    (
        "slerp",
        5,
        "{op: interpolate, pattern: '*', source_a: a.safetensors, source_b: b.safetensors, ratio: 0.3, method: slerp}",
    ),
    ("replace", 2, "{op: replace, pattern: m.weight, source: a.safetensors, source_key: m.weight}"),
    (
        "scale, add, add",
        4,
        "{op: scale, pattern: '*', factor: 1.1}, {op: add, pattern: '*', source: a.safetensors}, \
      {op: add, pattern: '*', source: b.safetensors, alpha: -0.5}",
    ),
];

fn main() {
    let folder = tempfile::tempdir().expect("there is room for three tensors");
    println!("{:24} {:>10} {:>14} {:>14}", "", "GB/s", "of a copy", "with report");
    for (name, dtype, width) in [("bf16", Dtype::BF16, 2), ("f16", Dtype::F16, 2), ("f32", Dtype::F32, 4)] {
        let root = folder.path().join(name);
        prepare(&root, dtype);
        let copy = copy_speed(ELEMENTS * width);
        println!("{:24} {copy:10.1}", format!("{name} plain copy"));
        for (program, moves, operations) in PROGRAMS {
            let plan = planned(&root, operations);
            let bytes = ELEMENTS * width * moves;
            let [bare, full] = [false, true].map(|report| speed(&plan, bytes, report));
            let percent = |speed: f64| format!("{:.0} %", speed / copy * 100.0);
            println!(
                "{:24} {bare:10.1} {:>14} {:>14}",
                format!("{name} {program}"),
                percent(bare),
                percent(full)
            );
        }
    }
}

/// A base and two donors of random numbers.
fn prepare(root: &Path, dtype: Dtype) {
    fs::create_dir_all(root.join("model")).expect("a directory");
    fs::write(root.join("model/config.json"), r#"{"model_type": "llama", "tie_word_embeddings": false}"#)
        .expect("a file");
    for (file, seed) in [("model/model.safetensors", 1), ("a.safetensors", 2), ("b.safetensors", 3)] {
        let mut state: u32 = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state as f32 / u32::MAX as f32 - 0.5
        };
        let values: Vec<f32> = (0..ELEMENTS).map(|_| next()).collect();
        let bytes: Vec<u8> = match dtype {
            Dtype::F16 => values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect(),
            Dtype::BF16 => values.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        let view = TensorView::new(dtype, SHAPE.to_vec(), &bytes).expect("a tensor");
        safetensors::serialize_to_file([("m.weight", view)], None, &root.join(file)).expect("a file");
    }
}

fn planned(root: &Path, operations: &str) -> Plan {
    let file = root.join("surgery.yaml");
    fs::write(&file, format!("version: 1\noperations: [{operations}]\n")).expect("a file");
    let base = Checkpoint::open(&root.join("model")).expect("a model");
    plan(&SurgeryFile::read(&file), base).expect("a plan")
}

/// Bytes read and written a second, in GB/s.
fn best(bytes: usize, mut run: impl FnMut()) -> f64 {
    let time = || {
        let begun = Instant::now();
        run();
        begun.elapsed().as_secs_f64()
    };
    let seconds = std::iter::repeat_with(time).take(RUNS).fold(f64::INFINITY, f64::min);
    bytes as f64 / seconds / 1e9
}

fn copy_speed(bytes: usize) -> f64 {
    const PIECE: usize = 1 << 20;
    let from = vec![1u8; bytes];
    let mut to = vec![2u8; bytes];
    best(2 * bytes, || {
        to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE)).for_each(|(to, from)| to.copy_from_slice(from));
    })
}

fn speed(plan: &Plan, bytes: usize, report: bool) -> f64 {
    let len = usize::try_from(plan.programs()[0].result_bytes()).expect("it fits in memory");
    let mut out = vec![3u8; len];
    best(bytes, || {
        let executor = if report { Executor::new(plan) } else { Executor::without_report(plan) };
        let mut executor = executor.expect("nothing has changed");
        executor.run(&plan.programs()[0], &mut out).expect("it runs");
        executor.finish().expect("nothing has changed");
    })
}
