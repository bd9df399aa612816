//! How exports end, and what goes along with the weights.

use super::*;

#[test]
fn an_export_never_writes_over_anything() {
    let bench = Bench::new(Dtype::BF16, &numbers(10, 1, false), &[]);
    let plan = bench.plan("[{op: scale, pattern: '*', factor: 2}]");
    let error = export(&plan, &bench.model(), &mut |_, _| {}, &Stop::new()).expect_err("it exists");
    assert_eq!(Diagnostic::from(&error).code, Code::OutputExists);
    assert!(stored(&bench.model()).contains_key("norm.weight"));
}

#[test]
fn an_export_that_is_stopped_or_fails_leaves_nothing_behind() {
    let bench = Bench::new(Dtype::F16, &numbers(100_000, 1, false), &[]);
    let output = bench.folder.path().join("out");
    let left = || fs::read_dir(bench.folder.path()).unwrap().count();
    let plan = bench.plan("[{op: scale, pattern: '*', factor: 2}]");
    let before = left();
    let stop = Stop::new();
    let error = export(&plan, &output, &mut |_, _| _ = stop.request(), &stop);
    assert!(matches!(error, Err(ExportError::Interrupted)), "{error:?}");
    assert_eq!(left(), before);
    let plan = bench.plan("[{op: scale, pattern: '*', factor: 1000000}]");
    let error = export(&plan, &output, &mut |_, _| {}, &Stop::new()).expect_err("it overflows");
    assert_eq!(Diagnostic::from(&error).code, Code::NotFiniteResult);
    assert_eq!(left(), before);
    let nowhere = bench.folder.path().join("no/such/place");
    let error = export(&plan, &nowhere, &mut |_, _| {}, &Stop::new()).expect_err("there is no place");
    assert_eq!(Diagnostic::from(&error).code, Code::OutputUnwritable);
}

#[test]
fn progress_goes_up_to_the_whole() {
    let bench = Bench::new(Dtype::BF16, &numbers(2_200_000, 1, false), &[]);
    let plan = bench.plan("[{op: scale, pattern: '*', factor: 2}]");
    let mut seen = Vec::new();
    let output = bench.folder.path().join("out");
    export(&plan, &output, &mut |done, total| seen.push((done, total)), &Stop::new()).expect("it works");
    assert!(seen.is_sorted() && seen.len() > 2, "{seen:?}");
    let last = seen.last().expect("there was progress");
    assert_eq!(last.0, last.1);
}

#[test]
fn files_beside_the_weights_go_along_but_not_other_weights() {
    let bench = Bench::new(Dtype::BF16, &numbers(10, 1, false), &[]);
    for name in [
        "tokenizer.json",
        "pytorch_model.bin",
        "pytorch_model.bin.index.json",
        "consolidated.safetensors",
        "adapter.npz",
        "merges.txt",
        ".hidden",
        "modeling.py",
    ] {
        fs::write(bench.model().join(name), name).unwrap();
    }
    fs::create_dir(bench.model().join("onnx")).unwrap();
    let (folder, _) = exported(&bench.plan("[{op: scale, pattern: '*', factor: 2}]"));
    let entries = fs::read_dir(folder.path().join("out")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let (copied, made) =
        ([".hidden", "config.json", "merges.txt"], ["model.safetensors", "modeling.py", "surgery.json"]);
    assert_eq!(names, [&copied[..], &made, &["tokenizer.json"]].concat());
}
