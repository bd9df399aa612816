//! Memory: what the plan says is what the executor takes.

use std::fs;

use safetensors::tensor::TensorView;

use super::*;
use crate::checkpoint::{Checkpoint, Dtype};
use crate::plan::plan;
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

/// Runs operations on two norms of so many elements; true if no program takes more than its share, and one all of it.
fn takes_what_the_plan_says(operations: &str, elements: [usize; 2]) -> bool {
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
    let mut peak = 0;
    for program in plan.programs() {
        let mut out = vec![0; usize::try_from(program.result_bytes()).expect("it fits")];
        executor.run(program, &mut out).expect("it runs");
        peak = peak.max(program.result_bytes() + executor.kept());
    }
    peak == plan.summary().peak_extra_bytes
}

#[test]
fn buffers_are_as_large_as_the_plan_says() {
    let add = |source| format!("{{op: add, pattern: '*', source: {source}.safetensors}}");
    let blend = "{op: interpolate, pattern: '*', source_a: same.safetensors, source_b: wide.safetensors, ratio: 0.5, \
                 method: slerp}";
    for elements in [[5, 100], [100, 5], [40_000, 3], [17 * TILE, TILE]] {
        assert!(takes_what_the_plan_says("{op: scale, pattern: '*', factor: 2}", elements), "{elements:?}");
        assert!(takes_what_the_plan_says(&add("wide"), elements), "{elements:?}");
        assert!(
            takes_what_the_plan_says(&format!("{}, {}", add("same"), add("wide")), elements),
            "{elements:?}"
        );
        assert!(takes_what_the_plan_says(blend, elements), "{elements:?}");
    }
}
