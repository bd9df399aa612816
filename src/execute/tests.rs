//! Memory: what the plan says is what the executor takes.

use std::fs;

use safetensors::tensor::TensorView;

use super::*;
use crate::checkpoint::{Checkpoint, Dtype};
use crate::plan::{TensorRef, cost, plan};
use crate::surgery::SurgeryFile;

/// Tensors of zeros, by name and number of elements.
fn write(path: &std::path::Path, dtype: Dtype, tensors: &[(&str, usize)]) {
    let zeros = vec![0; tensors.iter().map(|(_, n)| n * dtype.bitsize() / 8).max().unwrap_or(0)];
    let views = tensors.iter().map(|(name, n)| {
        let view = TensorView::new(dtype, vec![*n], &zeros[..n * dtype.bitsize() / 8]);
        (*name, view.expect("a tensor"))
    });
    safetensors::serialize_to_file(views, None, path).expect("it can be written");
}

/// What executing took, what it takes with one tile in flight, and what the plan says it takes at most.
struct Memory {
    taken: u64,
    of_one_tile: u64,
    promised: u64,
}

/// Runs operations on two norms of `elements` elements each, with `threads` threads.
fn memory(operations: &str, elements: [usize; 2], threads: usize) -> Memory {
    let folder = tempfile::tempdir().expect("there is room");
    let at = |name: &str| folder.path().join(name);
    let tensors = [("a.norm.weight", elements[0]), ("b.norm.weight", elements[1])];
    fs::create_dir(at("model")).expect("a directory");
    fs::write(at("model/config.json"), r#"{"model_type": "llama", "tie_word_embeddings": false}"#)
        .expect("a file");
    write(&at("model/model.safetensors"), Dtype::BF16, &tensors);
    write(&at("wide.safetensors"), Dtype::F32, &tensors);
    write(&at("same.safetensors"), Dtype::BF16, &tensors);
    fs::write(at("surgery.yaml"), format!("version: 1\noperations: [{operations}]\n")).expect("a file");
    let base = Checkpoint::open(&at("model")).expect("a model");
    let plan = plan(&SurgeryFile::read(&at("surgery.yaml")), base).expect("a plan");
    let mut executor = Executor::new(&plan).expect("nothing has changed");
    let mut memory = Memory { taken: 0, of_one_tile: 0, promised: plan.summary().peak_extra_bytes };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads").install(|| {
        for program in plan.programs() {
            let mut out = vec![0; usize::try_from(program.result_bytes()).expect("it fits")];
            executor.run(program, &mut out).expect("it runs");
            memory.taken = memory.taken.max(program.result_bytes() + executor.pool.bytes());
            let dtype = |tensor: &TensorRef| plan.donor_tensor(tensor).1.dtype;
            memory.of_one_tile = memory.of_one_tile.max(cost::extra_bytes(program, dtype, 1));
        }
    });
    memory
}

#[test]
fn executing_takes_what_the_plan_says() {
    let add = |source| format!("{{op: add, pattern: '*', source: {source}.safetensors}}");
    let blend = "{op: interpolate, pattern: '*', source_a: same.safetensors, source_b: wide.safetensors, ratio: 0.5, \
                 method: slerp}";
    let programs = [
        "{op: scale, pattern: '*', factor: 2}".to_owned(),
        add("wide"),
        format!("{}, {}", add("same"), add("wide")),
        blend.to_owned(),
    ];
    for elements in [[5, 100], [100, 5], [40_000, 3], [17 * TILE, TILE]] {
        for operations in &programs {
            let memory = |threads| memory(operations, elements, threads);
            let Memory { taken, of_one_tile, promised } = memory(1);
            assert_eq!(taken, of_one_tile, "{operations} {elements:?}");
            assert!(taken <= promised, "{operations} {elements:?}");
            let Memory { taken, promised, .. } = memory(24);
            assert!((of_one_tile..=promised).contains(&taken), "{operations} {elements:?}: {taken}");
        }
    }
}

#[test]
fn buffers_of_another_kind_of_program_do_not_count_on_top() {
    let folder = tempfile::tempdir().expect("there is room");
    let at = |name: &str| folder.path().join(name);
    let numbers = [0; 600];
    let tensor = |dtype: Dtype, n: usize| {
        TensorView::new(dtype, vec![n], &numbers[..n * dtype.bitsize() / 8]).expect("a tensor")
    };
    let write = |name: &str, a, b| {
        let tensors = [("a.norm.weight", tensor(a, 100)), ("b.norm.weight", tensor(b, 150))];
        safetensors::serialize_to_file(tensors, None, &at(name)).expect("it can be written");
    };
    fs::create_dir(at("model")).expect("a directory");
    fs::write(at("model/config.json"), r#"{"model_type": "llama", "tie_word_embeddings": false}"#)
        .expect("a file");
    // The first buffer is read into by a narrow donor and then by a wide one, the second the other way round.
    write("model/model.safetensors", Dtype::F32, Dtype::BF16);
    write("donor.safetensors", Dtype::BF16, Dtype::F32);
    let add = "version: 1\noperations: [{op: add, pattern: '*', source: donor.safetensors}]\n";
    fs::write(at("surgery.yaml"), add).expect("a file");
    let base = Checkpoint::open(&at("model")).expect("a model");
    let plan = plan(&SurgeryFile::read(&at("surgery.yaml")), base).expect("a plan");
    let mut executor = Executor::new(&plan).expect("nothing has changed");
    for program in plan.programs() {
        let mut out = vec![0; usize::try_from(program.result_bytes()).expect("it fits")];
        executor.run(program, &mut out).expect("it runs");
        let taken = program.result_bytes() + executor.pool.bytes();
        assert!(taken <= plan.summary().peak_extra_bytes, "{}: {taken}", program.key());
    }
}
