//! How near executing comes to the speed of memory: each program's bytes a second as a part of what a plain parallel
//! copy reaches in the same run. `cargo bench --no-default-features --bench execute`; `-- 'f32 add'` for some of them.

#![expect(clippy::print_stdout, reason = "its figures are for people")]
#![expect(clippy::cast_precision_loss, reason = "figures are shown with three digits")]

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use half::{bf16, f16};
use mlxcel::internals::checkpoint::{Dtype, Shard};
use mlxcel::{Checkpoint, ExecuteError, Executor, Plan, SurgeryFile, plan};
use rayon::prelude::*;
use safetensors::tensor::TensorView;

/// Rows and columns of the tensor.
const SHAPE: [usize; 2] = [16_384, 2_048];
const CONFIG: &str = r#"{"model_type": "llama", "tie_word_embeddings": false}"#;
const ELEMENTS: usize = SHAPE[0] * SHAPE[1];
/// Number of rounds; the median of their figures counts.
const ROUNDS: usize = 15;

/// A program: its name, the bytes it reads and writes an element and byte of width, its operations.
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
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let folder = tempfile::tempdir().expect("there is room for three tensors");
    println!("{:20} {:>6} {:>14}", "", "GB/s", "reading alone   of a copy  with figures  and digest");
    for (name, dtype, width) in [("bf16", Dtype::BF16, 2), ("f16", Dtype::F16, 2), ("f32", Dtype::F32, 4)] {
        let root = folder.path().join(name);
        prepare(&root, dtype);
        for (program, moves, operations) in PROGRAMS {
            if !format!("{name} {program}").contains(&wanted) {
                continue;
            }
            let plan = planned(&root, operations);
            let mut copying = Copying::new(ELEMENTS * width);
            let inputs = inputs(&plan, operations);
            // In turns, and each compared with the copy of its own round, so that whatever slows a round slows both.
            let rounds: Vec<[f64; 5]> = (0..ROUNDS)
                .map(|_| {
                    [
                        copying.seconds(),
                        reading_tiles(&inputs),
                        seconds(&plan, Executor::without_report),
                        seconds(&plan, Executor::without_digest),
                        seconds(&plan, Executor::new),
                    ]
                })
                .collect();
            let of_a_copy = |column: usize| {
                let ratio = |round: &[f64; 5]| moves as f64 / 2.0 * round[0] / round[column];
                format!("{:.0} %", 100.0 * median(rounds.iter().map(ratio)))
            };
            let [reading, bare, figures, digest] = [1, 2, 3, 4].map(of_a_copy);
            let speed = (ELEMENTS * width * moves) as f64 / median(rounds.iter().map(|round| round[2]));
            let (name, speed) = (format!("{name} {program}"), speed / 1e9);
            println!("{name:20} {speed:6.1} {reading:>14} {bare:>10} {figures:>13} {digest:>11}");
        }
    }
    if wanted.is_empty() {
        quantized(folder.path());
        pruned(folder.path());
    }
}

/// Scaling quantized matrices against reading and copying their scales and biases, and against scaling a dense one.
fn quantized(folder: &Path) {
    const MATRICES: usize = 12;
    let root = folder.join("quantized");
    let [rows, columns] = SHAPE;
    let part = |dtype: Dtype, columns: usize| {
        (dtype, vec![rows, columns], vec![0x3cu8; rows * columns * dtype.bitsize() / 8])
    };
    let parts = [
        ("weight", part(Dtype::U32, columns / 8)),
        ("scales", part(Dtype::BF16, columns / 64)),
        ("biases", part(Dtype::BF16, columns / 64)),
    ];
    let named = |matrix: usize| parts.clone().map(|(name, tensor)| (format!("m.{matrix}.{name}"), tensor));
    write_model(&root, &(0..MATRICES).flat_map(named).collect::<Vec<_>>());
    let config = r#"{"model_type": "llama", "quantization": {"bits": 4, "group_size": 64}}"#;
    fs::write(root.join("model/config.json"), config).expect("a file");
    let plan = planned(&root, PROGRAMS[0].2);
    let touched = 2 * rows * columns / 64 * 2;
    let mut copying = Copying::new(touched * MATRICES);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let [read, alone, copy, bare, figures] = turns([
        &mut || reading(&plan),
        &mut || one.install(|| reading(&plan)),
        &mut || copying.seconds(),
        &mut || seconds(&plan, Executor::without_report),
        &mut || seconds(&plan, Executor::without_digest),
    ])
    .map(|seconds| seconds / MATRICES as f64 * 1e3);
    let dense = planned(&folder.join("bf16"), PROGRAMS[0].2);
    let [dense] = turns([&mut || seconds(&dense, Executor::without_report)]);
    println!(
        "\nscaling {rows} x {columns}, 4 bits in groups of 64: {bare:.2} ms, {figures:.2} ms with figures"
    );
    println!(
        "reading its scales and biases: {read:.2} ms, by one thread {alone:.2} ms, copying them: {copy:.2} ms"
    );
    println!("scaling it in bf16: {:.2} ms\n", dense * 1e3);
}

/// Reads what a plan edits, tensor after tensor, each with all threads.
fn reading(plan: &Plan) -> f64 {
    const PIECE: usize = 1 << 16;
    let mut out = Vec::new();
    let begun = Instant::now();
    for program in plan.programs() {
        let (shard, range) = plan.base_tensor(program);
        out.resize(usize::try_from(range.end - range.start).expect("it fits in memory"), 0);
        out.par_chunks_mut(PIECE).enumerate().for_each(|(i, piece)| {
            shard.read_at(piece, range.start + (i * PIECE) as u64).expect("it is there");
        });
    }
    begun.elapsed().as_secs_f64()
}

/// The base, if it is read, and the donors: each a file and where its tensor is, as often as it is read.
fn inputs<'p>(plan: &'p Plan, operations: &str) -> Vec<(&'p Shard, u64, usize)> {
    let base = plan.programs().iter().map(|program| plan.base_tensor(program));
    let base = base.filter(|_| !operations.contains("interpolate") && !operations.contains("replace"));
    let read = if operations.contains("slerp") { 2 } else { 1 };
    let donors = plan.donors().iter().flat_map(|donor| {
        let (_, tensor) = &donor.weights.index.entries()[0];
        std::iter::repeat_n(donor.weights.locate(tensor), read)
    });
    let bytes = |range: &Range<u64>| usize::try_from(range.end - range.start).expect("it fits in memory");
    base.chain(donors).map(|(shard, range)| (shard, range.start, bytes(&range))).collect()
}

/// Reads a tile's piece of each input, piece after piece, and does nothing with them: what no program that reads by
/// position can be faster than.
fn reading_tiles(inputs: &[(&Shard, u64, usize)]) -> f64 {
    const PIECE: usize = 1 << 16;
    let bytes = inputs.iter().map(|(_, _, bytes)| *bytes).min().unwrap_or(0);
    let begun = Instant::now();
    let pieces = (0..bytes.div_ceil(PIECE)).into_par_iter().with_min_len(16);
    pieces.for_each_init(Vec::new, |buffer, piece| {
        let at = piece * PIECE;
        buffer.resize(PIECE.min(bytes - at), 0);
        for (shard, start, _) in inputs {
            shard.read_at(buffer, start + at as u64).expect("it is there");
        }
    });
    begun.elapsed().as_secs_f64()
}

/// Pruning one channel, some and many.
fn pruned(folder: &Path) {
    const CHANNELS: usize = 8192;
    let root = folder.join("pruned");
    let part =
        |rows: usize, columns: usize| (Dtype::BF16, vec![rows, columns], vec![0x3cu8; rows * columns * 2]);
    let (tall, wide) = (part(CHANNELS, SHAPE[1]), part(SHAPE[1], CHANNELS));
    let tensors = [("gate", tall.clone()), ("up", tall), ("down", wide)];
    write_model(
        &root,
        &tensors.map(|(name, tensor)| (format!("model.layers.0.mlp.{name}_proj.weight"), tensor)),
    );
    for count in [1, 64, CHANNELS / 2] {
        let ids: Vec<String> = (0..count).map(|i| (2 * i).to_string()).collect();
        let prune = format!(
            "{{op: prune, granularity: mlp_channel, pattern: '*mlp*', channel_ids: [{}]}}",
            ids.join(",")
        );
        let plan = planned(&root, &prune);
        let medians = turns([&mut || seconds(&plan, Executor::without_report), &mut || {
            seconds(&plan, Executor::without_digest)
        }]);
        let [bare, figures] = medians.map(|seconds| seconds * 1e3);
        println!("pruning {count:4} channels of {CHANNELS}: {bare:.1} ms, {figures:.1} ms with figures");
    }
}

type Tensor = (Dtype, Vec<usize>, Vec<u8>);

fn write_model(root: &Path, tensors: &[(String, Tensor)]) {
    fs::create_dir_all(root.join("model")).expect("a directory");
    fs::write(root.join("model/config.json"), CONFIG).expect("a file");
    let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
        (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).expect("a tensor"))
    });
    safetensors::serialize_to_file(views, None, &root.join("model/model.safetensors")).expect("a file");
}

/// A base and two donors of random numbers.
fn prepare(root: &Path, dtype: Dtype) {
    fs::create_dir_all(root.join("model")).expect("a directory");
    fs::write(root.join("model/config.json"), CONFIG).expect("a file");
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
        let path = root.join(file);
        safetensors::serialize_to_file([("m.weight", view)], None, &path).expect("a file");
        settle(&path);
    }
}

/// Brings a file into the page cache as it comes there when it is read: in larger pieces than when it is written.
fn settle(path: &Path) {
    #[cfg(target_os = "linux")]
    {
        let file = fs::File::open(path).expect("it was written");
        file.sync_all().expect("it can be written out");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("Linux can forget it");
    }
    fs::read(path).expect("it can be read");
}

fn planned(root: &Path, operations: &str) -> Plan {
    let file = root.join("surgery.yaml");
    fs::write(&file, format!("version: 1\noperations: [{operations}]\n")).expect("a file");
    let base = Checkpoint::open(&root.join("model")).expect("a model");
    plan(&SurgeryFile::read(&file), base).expect("a plan")
}

/// The median of several runs of each, in turns.
fn turns<const N: usize>(mut runs: [&mut dyn FnMut() -> f64; N]) -> [f64; N] {
    let rounds: Vec<[f64; N]> = (0..ROUNDS).map(|_| runs.each_mut().map(|run| run())).collect();
    std::array::from_fn(|i| median(rounds.iter().map(|round| round[i])))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A plain copy by all threads.
struct Copying {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Copying {
    fn new(bytes: usize) -> Self {
        Self { from: vec![1; bytes], to: vec![2; bytes] }
    }

    fn seconds(&mut self) -> f64 {
        const PIECE: usize = 1 << 20;
        let begun = Instant::now();
        let pieces = self.to.par_chunks_mut(PIECE).zip(self.from.par_chunks(PIECE));
        pieces.for_each(|(to, from)| to.copy_from_slice(from));
        begun.elapsed().as_secs_f64()
    }
}

thread_local! {
    /// Where results go: the pages are there after the first round.
    static RESULT: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// The time of executing a plan, without opening its files.
fn seconds<'p>(plan: &'p Plan, executor: impl Fn(&'p Plan) -> Result<Executor<'p>, ExecuteError>) -> f64 {
    let largest = plan.programs().iter().map(mlxcel::Program::result_bytes).max().unwrap_or(0);
    let largest = usize::try_from(largest).expect("it fits in memory");
    RESULT.with_borrow_mut(|out| {
        if out.len() < largest {
            out.resize(largest, 3);
        }
        let begun = Instant::now();
        let mut executor = executor(plan).expect("nothing has changed");
        for program in plan.programs() {
            let bytes = usize::try_from(program.result_bytes()).expect("it fits in memory");
            executor.run(program, &mut out[..bytes]).expect("it runs");
        }
        executor.finish().expect("nothing has changed");
        begun.elapsed().as_secs_f64()
    })
}
