//! Executing plans: what comes out, bit for bit, in memory and on disk.

mod exports;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use mlxcel::internals::checkpoint::{Dtype, Weights};
use mlxcel::{
    Checkpoint, Code, Diagnostic, ExecuteError, Executor, ExportError, Plan, Report, Stop, SurgeryFile,
    export, plan,
};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde::Deserialize;
use tempfile::TempDir;

use crate::sparse::fixtures;

/// Bytes by key.
type Tensors = BTreeMap<String, Vec<u8>>;

#[derive(Deserialize)]
struct Case {
    model: String,
    edited: Option<usize>,
    tie: Option<String>,
}

/// Every case that is not refused: its name, what is said of it, its surgery file and its model.
fn cases() -> Vec<(String, Case, PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/conformance/surgery");
    let text = fs::read(root.join("cases.json")).expect("the cases are there");
    let cases: BTreeMap<String, Case> = serde_json::from_slice(&text).expect("they are JSON");
    cases
        .into_iter()
        .filter(|(_, case)| case.edited.is_some())
        .map(|(name, case)| {
            let file = root.join(&name).join("surgery.yaml");
            let model = root.join("models").join(&case.model);
            (name, case, file, model)
        })
        .collect()
}

fn planned(file: &Path, model: &Path) -> Plan {
    let base = Checkpoint::open(model).expect("the model can be read");
    plan(&SurgeryFile::read(file), base).unwrap_or_else(|refusal| panic!("{}: {refusal:?}", file.display()))
}

fn run(plan: &Plan) -> Result<(Tensors, Report), ExecuteError> {
    let mut executor = Executor::new(plan)?;
    let mut tensors = Tensors::new();
    for program in plan.programs() {
        let mut out = vec![0xaa; usize::try_from(program.result_bytes()).expect("it fits")];
        executor.run(program, &mut out)?;
        tensors.insert(program.key().to_string(), out);
    }
    Ok((tensors, executor.finish()?))
}

fn read(file: &Path) -> Tensors {
    let bytes = fs::read(file).expect("it can be read");
    let tensors = SafeTensors::deserialize(&bytes).expect("it is a safetensors file");
    tensors.iter().map(|(key, tensor)| (key.to_owned(), tensor.data().to_vec())).collect()
}

/// All stored tensors of a checkpoint.
fn stored(dir: &Path) -> Tensors {
    let weights = Weights::open(dir).expect("the checkpoint can be read");
    weights.shards.iter().flat_map(|shard| read(&shard.path)).collect()
}

/// The distance in units in the last place, as the dtype has them.
fn units_apart(dtype: Dtype, got: &[u8], want: &[u8]) -> i64 {
    let place = |magnitude: i64, negative: bool| if negative { -magnitude } else { magnitude };
    let places = |bytes: &[u8]| -> Vec<i64> {
        match dtype {
            Dtype::F32 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| u32::from_le_bytes(*b))
                .map(|bits| place(i64::from(bits & 0x7fff_ffff), bits >> 31 == 1))
                .collect(),
            _ => bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| u16::from_le_bytes(*b))
                .map(|bits| place(i64::from(bits & 0x7fff), bits >> 15 == 1))
                .collect(),
        }
    };
    places(got).iter().zip(places(want)).map(|(got, want)| (got - want).abs()).max().unwrap_or(0)
}

/// Edited tensors are as they should be: bit for bit, or where there is a SLERP within one unit in the last place.
#[track_caller]
fn check_edited(name: &str, plan: &Plan, file: &Path, got: &Tensors, want: &Tensors) {
    let slerp = fs::read_to_string(file).expect("it can be read").contains("slerp");
    for (key, want) in want {
        let got = got.get(key).unwrap_or_else(|| panic!("{name}: `{key}` is not there"));
        let info = plan.base().weights.index.get(key).expect("the base has it");
        assert_eq!(got.len(), want.len(), "{name}: `{key}`");
        let apart = if slerp { units_apart(info.dtype, got, want) } else { i64::from(got != want) };
        assert!(apart <= i64::from(slerp), "{name}: `{key}` is {apart} units off");
    }
}

#[test]
fn every_edited_tensor_is_what_independent_programs_make_of_it() {
    for (name, _, file, model) in cases() {
        let plan = planned(&file, &model);
        let (got, report) = run(&plan).unwrap_or_else(|error| panic!("{name}: {error}"));
        let want = read(&file.with_file_name("expected.safetensors"));
        assert!(got.keys().all(|key| want.contains_key(key)), "{name}: more was edited than expected");
        check_edited(&name, &plan, &file, &got, &want);
        assert_eq!(usize::try_from(report.tensors), Ok(got.len()), "{name}");
        let summary = plan.summary();
        assert_eq!(
            (report.base_bytes, report.donor_bytes, report.result_bytes),
            (summary.base_bytes, summary.donor_bytes, summary.result_bytes),
            "{name}: bytes are what the plan says"
        );
    }
}

#[test]
fn an_export_has_the_edited_tensors_and_everything_else_as_it_was() {
    for (name, case, file, model) in cases() {
        let plan = planned(&file, &model);
        let (folder, report) = exported(&plan);
        let output = folder.path().join("out");
        let (got, base) = (stored(&output), stored(&model));
        let mut want = read(&file.with_file_name("expected.safetensors"));
        check_edited(&name, &plan, &file, &got, &want);
        for (key, bytes) in &base {
            if !want.contains_key(key) {
                assert!(got[key] == *bytes, "{name}: `{key}` was not to be touched");
            }
        }
        want.extend(base.clone());
        let head = case.tie.as_deref() == Some("broken");
        assert_eq!(got.contains_key("lm_head.weight"), head || base.contains_key("lm_head.weight"), "{name}");
        check_shards(&name, &plan, &output);
        check_other_files(&name, &plan, &output, head);
        assert_eq!(report.weights_sha256, run(&plan).expect("it runs").1.weights_sha256, "{name}");
    }
}

fn exported(plan: &Plan) -> (TempDir, Report) {
    let folder = TempDir::new().expect("there is room");
    let output = folder.path().join("out");
    let exported = export(plan, &output, &mut |_, _| {}, &Stop::new()).expect("it can be exported");
    assert_eq!(exported.tensors, stored(&output).len());
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1, "nothing else is left");
    (folder, exported.report)
}

/// The same tensors in the same order with the same metadata, but for what an edit adds at the end.
#[track_caller]
fn check_shards(name: &str, plan: &Plan, output: &Path) {
    let new = Weights::open(output).expect("the export can be read");
    assert_eq!(new.shards.len(), plan.base().weights.shards.len(), "{name}");
    for (old, new) in plan.base().weights.shards.iter().zip(&new.shards) {
        assert_eq!(old.path.file_name(), new.path.file_name(), "{name}");
        if plan.programs().is_empty() {
            assert!(
                fs::read(&old.path).unwrap() == fs::read(&new.path).unwrap(),
                "{name}: not a byte differs"
            );
            continue;
        }
        let order = |shard: &mlxcel::internals::checkpoint::Shard| -> Vec<String> {
            let (_, tensors) =
                mlxcel::internals::checkpoint::Shard::open(&shard.path).expect("a shard can be read");
            tensors.iter().map(|tensor| tensor.key.to_string()).collect()
        };
        let (old_order, new_order) = (order(old), order(new));
        assert_eq!(old_order, new_order[..old_order.len()], "{name}");
        let mut metadata = old.metadata.clone().unwrap_or_default();
        metadata.push(("mlxcel.digest".into(), plan.digest().expect("something is edited").into()));
        metadata.push(("mlxcel.surgery".into(), "surgery.yaml".into()));
        assert_eq!(new.metadata.as_ref(), Some(&metadata), "{name}");
    }
}

#[track_caller]
fn check_other_files(name: &str, plan: &Plan, output: &Path, untied: bool) {
    let json =
        |path: PathBuf| -> serde_json::Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let mut config = json(plan.base().dir.join("config.json"));
    if untied {
        config["tie_word_embeddings"] = false.into();
        // Opened again, the head is a tensor of its own.
        let again = Checkpoint::open(output).expect("the export is a model");
        assert!(again.weights.index.get("lm_head.weight").is_some(), "{name}");
    }
    assert_eq!(json(output.join("config.json")), config, "{name}");
    assert_eq!(output.join("surgery.json").exists(), !plan.programs().is_empty(), "{name}");
}

/// A little llama of one embedding and one head, with donors beside it.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(dtype: Dtype, base: &[f32], donors: &[(&str, Dtype, &[f32])]) -> Self {
        let folder = TempDir::new().expect("there is room");
        let bench = Self { folder };
        fs::create_dir(bench.model()).unwrap();
        let config = r#"{"model_type": "llama", "tie_word_embeddings": false}"#;
        fs::write(bench.model().join("config.json"), config).unwrap();
        write(&bench.model().join("model.safetensors"), dtype, base);
        for (name, dtype, values) in donors {
            write(&bench.donor(name), *dtype, values);
        }
        bench
    }

    fn model(&self) -> PathBuf {
        self.folder.path().join("model")
    }

    fn donor(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.safetensors"))
    }

    fn plan(&self, operations: &str) -> Plan {
        let file = self.folder.path().join("surgery.yaml");
        fs::write(&file, format!("version: 1\noperations: {operations}\n")).unwrap();
        planned(&file, &self.model())
    }

    /// The result, or the base where nothing is edited.
    fn result(&self, operations: &str) -> Vec<u8> {
        let (mut tensors, _) = run(&self.plan(operations)).expect("it runs");
        tensors.remove("norm.weight").unwrap_or_else(|| self.base())
    }

    fn base(&self) -> Vec<u8> {
        stored(&self.model()).remove("norm.weight").expect("it is there")
    }
}

fn encode(dtype: Dtype, values: &[f32]) -> Vec<u8> {
    match dtype {
        Dtype::F16 => values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect(),
        Dtype::BF16 => values.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
    }
}

fn write(path: &Path, dtype: Dtype, values: &[f32]) {
    let bytes = encode(dtype, values);
    let view = TensorView::new(dtype, vec![values.len()], &bytes).expect("it is a tensor");
    safetensors::serialize_to_file([("norm.weight", view)], None, path).expect("it can be written");
}

/// Numbers of all sizes, and with `odd` some that are none.
fn numbers(n: usize, seed: u32, odd: bool) -> Vec<f32> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match state >> 28 {
            0 if odd => [f32::NAN, f32::INFINITY, -0.0, 1e-40, -f32::NAN][(state >> 16) as usize % 5],
            #[expect(clippy::cast_precision_loss, reason = "any number will do")]
            _ => (state >> 8) as f32 / 8_388_608.0 - 1.0,
        }
    };
    (0..n).map(next).collect()
}

const DTYPES: [Dtype; 3] = [Dtype::F16, Dtype::BF16, Dtype::F32];

#[test]
fn what_means_nothing_keeps_every_bit() {
    for dtype in DTYPES {
        let base = numbers(1000, 1, true);
        let other = numbers(1000, 2, true);
        let bench = Bench::new(dtype, &base, &[("same", dtype, &base), ("other", dtype, &other)]);
        let untouched = bench.base();
        let other = encode(dtype, &other);
        let check = |operations: &str, want: &[u8]| {
            assert!(bench.result(operations) == want, "{dtype:?}: {operations}");
        };
        check("[]", &untouched);
        check("[{op: scale, pattern: '*', factor: 1}]", &untouched);
        check("[{op: add, pattern: '*', source: other.safetensors, alpha: 0}]", &untouched);
        check(
            "[{op: replace, pattern: norm.weight, source: same.safetensors, source_key: norm.weight}]",
            &untouched,
        );
        check(
            "[{op: replace, pattern: norm.weight, source: other.safetensors, source_key: norm.weight}]",
            &other,
        );
        for method in ["lerp", "slerp"] {
            let blend = |ratio| {
                format!(
                    "[{{op: interpolate, pattern: '*', source_a: same.safetensors, source_b: other.safetensors, \
                     ratio: {ratio}, method: {method}}}]"
                )
            };
            check(&blend(0), &untouched);
            check(&blend(1), &other);
        }
    }
}

#[test]
fn adding_and_taking_away_again_is_off_by_a_rounding_at_most() {
    for dtype in DTYPES {
        let bench =
            Bench::new(dtype, &numbers(5000, 3, false), &[("d", Dtype::F32, &numbers(5000, 4, false))]);
        let add = |alpha: f64| format!("{{op: add, pattern: '*', source: d.safetensors, alpha: {alpha}}}");
        let both = bench.result(&format!("[{}, {}]", add(0.25), add(-0.25)));
        let limit = i64::from(dtype == Dtype::F32);
        let values = numbers(5000, 3, false);
        let close = encode(dtype, &values);
        // In working precision nothing of the base's own precision is lost but near 0.
        let width = close.len() / values.len();
        for (i, value) in values.iter().enumerate().filter(|(_, value)| value.abs() > 0.01) {
            let part = i * width..(i + 1) * width;
            let apart = units_apart(dtype, &both[part.clone()], &close[part]);
            assert!(apart <= limit, "{dtype:?}: element {i} ({value}) is {apart} units off");
        }
    }
}

#[test]
fn results_and_figures_do_not_depend_on_the_number_of_threads() {
    const N: usize = 540_001;
    let operations = [
        "[{op: scale, pattern: '*', factor: 1.1}, {op: add, pattern: '*', source: b.safetensors, alpha: 0.3}]",
        "[{op: interpolate, pattern: '*', source_a: a.safetensors, source_b: b.safetensors, ratio: 0.3, method: slerp}, \
         {op: scale, pattern: '*', factor: 0.7}]",
    ];
    for dtype in [Dtype::BF16, Dtype::F32] {
        let (a, b) = (numbers(N, 6, false), numbers(N, 7, false));
        let bench = Bench::new(dtype, &numbers(N, 5, true), &[("a", Dtype::F16, &a), ("b", Dtype::F32, &b)]);
        for operations in operations {
            let plan = bench.plan(operations);
            let with = |threads| {
                let pool =
                    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
                let (tensors, report) = pool.install(|| run(&plan)).expect("it runs");
                (tensors, serde_json::to_string(&report).expect("it is JSON"))
            };
            let one = with(1);
            for threads in [2, 7] {
                assert!(with(threads) == one, "{dtype:?}: {threads} threads: {operations}");
            }
        }
    }
}

#[test]
fn a_result_that_overflows_is_refused_with_its_place() {
    let mut base = numbers(100_000, 8, false);
    base[70_000] = 60_000.0;
    base[90_000] = -60_000.0;
    base[95_000] = f32::INFINITY;
    let bench = Bench::new(Dtype::F16, &base, &[]);
    let error =
        run(&bench.plan("[{op: scale, pattern: '*', factor: 1.5}]")).expect_err("65504 is the largest");
    let ExecuteError::NotFinite { key, count, first, operations } = &error else { panic!("{error}") };
    assert_eq!((key.as_str(), *count, *first), ("norm.weight", 2, 70_000));
    assert_eq!(operations.iter().map(|one| one.op).collect::<Vec<_>>(), ["scale"]);
    assert_eq!(Diagnostic::from(&error).code, Code::NotFiniteResult);
    let (_, report) =
        run(&bench.plan("[{op: scale, pattern: '*', factor: 0.5}]")).expect("nothing overflows");
    assert_eq!(report.not_finite, 1);
}

#[test]
fn what_is_not_finite_because_a_donor_is_not_is_said_to_come_from_an_input() {
    let (base, mut donor) = (numbers(1000, 8, false), numbers(1000, 9, false));
    donor[7] = f32::INFINITY;
    donor[8] = f32::NAN;
    let bench = Bench::new(Dtype::BF16, &base, &[("d", Dtype::BF16, &donor)]);
    let (_, report) = run(&bench.plan("[{op: add, pattern: '*', source: d.safetensors}]")).expect("it runs");
    let last = report.lines().pop().expect("a line");
    assert!(last.contains(", 2 elements not finite because an input is not, "), "{last}");
}

#[test]
fn a_donor_that_is_cut_or_replaced_is_an_error() {
    let values = numbers(200_000, 9, false);
    let bench = Bench::new(Dtype::BF16, &values, &[("d", Dtype::BF16, &values)]);
    let operations = "[{op: add, pattern: '*', source: d.safetensors}]";
    let check = |result: Result<(), ExecuteError>| {
        let error = result.expect_err("it changed");
        assert_eq!(Diagnostic::from(&error).code, Code::FileChanged, "{error}");
    };
    // While it is read.
    let plan = bench.plan(operations);
    let mut executor = Executor::new(&plan).expect("nothing has changed yet");
    let file = fs::File::options().write(true).open(bench.donor("d")).unwrap();
    file.set_len(100_000).unwrap();
    let program = &plan.programs()[0];
    check(executor.run(program, &mut vec![0; usize::try_from(program.result_bytes()).unwrap()]));
    check(executor.finish().map(drop));
    // Before.
    check(Executor::new(&plan).map(drop));
    // Replaced by a file of the same name and size.
    write(&bench.donor("d"), Dtype::BF16, &values);
    let plan = bench.plan(operations);
    fs::remove_file(bench.donor("d")).unwrap();
    write(&bench.donor("d"), Dtype::BF16, &values);
    check(Executor::new(&plan).map(drop));
}

/// Bytes that this thread has read from files so far.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let counters = fs::read_to_string("/proc/thread-self/io").expect("Linux counts");
    let line = counters.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("a counter");
    line.parse().expect("a number")
}

#[test]
#[cfg(target_os = "linux")]
fn scaling_quantized_matrices_reads_their_scales_and_biases_and_no_code() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("surgery.yaml");
    let scale = "{op: scale, pattern: 'model.layers.*_proj.weight', factor: 0.5}";
    fs::write(&file, format!("version: 1\noperations: [{scale}]\n")).expect("it is written");
    let model = fixtures("models/tiny-tales/base-4bit");
    let plan = planned(&file, &model);
    let of_codes = |program: &mlxcel::Program| program.key().as_str().ends_with(".weight");
    assert!(!plan.programs().is_empty() && !plan.programs().iter().any(of_codes));
    // One thread does it all, and the system counts for each.
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let (read, (edited, report)) = one.install(|| {
        let before = bytes_read();
        let made = run(&plan).expect("it runs");
        (bytes_read() - before, made)
    });
    let members: u64 = edited.values().map(|bytes| bytes.len() as u64).sum();
    assert_eq!(report.base_bytes, members);
    // The counter's own file is read too.
    assert!((members..members + 1024).contains(&read), "{read} bytes were read for {members}");
}
