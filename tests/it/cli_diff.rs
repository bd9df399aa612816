//! `mlxcel surgery diff` of files that are written for it: what can be compared, and what is said of the rest.

use std::fs;
use std::path::Path;

use crate::program::{Run, mlxcel};
use crate::sparse;

#[track_caller]
fn check(stage: &tempfile::TempDir, arguments: &str, code: i32) -> Run {
    let run = mlxcel(stage.path(), arguments);
    assert_eq!(run.code, code, "{arguments}: {run:#?}");
    run
}

#[test]
fn what_cannot_be_compared_is_told_with_both_dtypes_and_shapes() {
    let stage = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &str| sparse::write(&stage.path().join(name), text);
    write("a.safetensors", "l.{0..1}.w BF16 8,4\nl.2.w BF16 4,4\nn BF16 4\nsame BF16 4");
    write("b.safetensors", "l.{0..1}.w U32 8,2\nl.2.w U32 4,2\nm BF16 4\nn BF16 5\nsame BF16 4");
    let text = check(&stage, "surgery diff a.safetensors b.safetensors", 0).stdout;
    let says =
        |name: &str| text.lines().map(str::trim).find(|line| line.starts_with(name)).unwrap_or_default();
    for (name, end) in [
        ("l.{0", "  2 tensors, BF16 [8, 4] in the first, U32 [8, 2] in the second"),
        ("l.2.w", "  BF16 [4, 4] in the first, U32 [4, 2] in the second"),
        ("n ", "  BF16 [4] in the first, BF16 [5] in the second"),
        ("m ", "  only in the second"),
        (
            "5 of 6",
            "differ (4 in shape or dtype and cannot be compared; 1 exists on one side only), 1 is equal",
        ),
    ] {
        assert!(says(name).ends_with(end), "{name}: {text}");
    }
    assert!(!text.contains("dequantize"), "{text}");
    write("c.safetensors", "l.0.weight BF16 8,8\nn BF16 4");
    write("d.safetensors", "l.0.weight U32 8,1\nl.0.scales BF16 8,1\nl.0.biases BF16 8,1\nn BF16 4");
    for arguments in ["surgery diff c.safetensors d.safetensors", "surgery diff d.safetensors c.safetensors"]
    {
        let text = check(&stage, arguments, 0).stdout;
        assert!(text.contains("cannot be compared with dense ones; dequantize them first\n"), "{text}");
    }
    let json = check(&stage, "surgery diff a.safetensors b.safetensors --json", 0).json();
    let tensors = json["tensors"].as_array().expect("a list");
    let [w, n] = ["l.0.w", "n"].map(|key| tensors.iter().find(|one| one["key"] == key).expect("it is there"));
    assert_eq!((&w["dtype"], &w["shape"]), (&"BF16".into(), &serde_json::json!([8, 4])));
    assert_eq!(w["dtypes"], serde_json::json!(["BF16", "U32"]));
    assert_eq!(w["shapes"], serde_json::json!([[8, 4], [8, 2]]));
    assert_eq!((n.get("dtypes"), &n["shapes"]), (None, &serde_json::json!([[4], [5]])));
}

/// A file with tensors of one row: name, dtype, bytes.
fn file(path: &Path, tensors: &[(&str, &str, &[u8], usize)]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, dtype, bytes, elements) in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        let info = serde_json::json!({"dtype": dtype, "shape": [elements], "data_offsets": offsets});
        header.insert((*name).to_owned(), info);
        data.extend_from_slice(bytes);
    }
    let header = serde_json::Value::from(header).to_string();
    let length = u64::try_from(header.len()).expect("it is short").to_le_bytes();
    fs::write(path, [&length, header.as_bytes(), &data].concat()).expect("a file");
}

#[test]
fn the_same_values_in_another_dtype_differ_in_nothing_else() {
    let stage = tempfile::tempdir().expect("a temporary directory");
    // bf16 values: 1, -0, a NaN with a payload. An f16 NaN's payload has another place.
    let bf16: [u8; 6] = [0x80, 0x3f, 0x00, 0x80, 0xc1, 0x7f];
    let f16: [u8; 6] = [0x00, 0x3c, 0x00, 0x80, 0x00, 0x7e];
    let other_nan: [u8; 6] = [0x80, 0x3f, 0x00, 0x00, 0xc0, 0x7f];
    let write = |name: &str, dtype: &str, values: &[u8]| {
        let path = stage.path().join(name).with_extension("safetensors");
        file(&path, &[("empty", dtype, &[], 0), ("values", dtype, values, 3)]);
    };
    write("a", "BF16", &bf16);
    write("b", "F16", &f16);
    write("c", "BF16", &other_nan);
    let diff = |a: &str, b: &str| {
        let run = check(&stage, &format!("surgery diff {a}.safetensors {b}.safetensors --json"), 0).json();
        let tensors = run["tensors"].as_array().expect("a list").clone();
        let figures = tensors.iter().map(|one| format!("{} {}", one["key"], one["different"]));
        (figures.collect::<Vec<_>>(), run["summary"]["equal"].clone())
    };
    assert_eq!(diff("a", "b"), (vec!["\"empty\" 0".to_owned(), "\"values\" 0".to_owned()], 0.into()));
    // In one dtype, bits are what differs: those of zeros and NaNs too.
    assert_eq!(diff("a", "c"), (vec!["\"values\" 2".to_owned()], 1.into()));
}

#[test]
fn what_is_not_finite_is_counted_on_both_sides() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    let stage = tempfile::tempdir().expect("a temporary directory");
    let cases = [
        ("gone", [1.0, NAN, NAN], [2.0, 2.0, 3.0], "3 of 3 elements, 2 NaN in the first only"),
        ("new", [1.0, 2.0, 3.0], [1.0, INF, 3.0], "1 of 3 elements, 1 infinite in the second only"),
        ("beside", [NAN, 2.0, 3.0], [NAN, 2.5, 3.0], "1 of 3 elements, 1 NaN in both"),
        ("sign", [INF, 2.0, NAN], [-INF, 2.0, NAN], "1 of 3 elements, 2 NaN or infinite in both"),
        ("finite", [1.0, 0.0, 0.0], [2.0, 0.0, 0.0], "max 1, change 100 %, cosine 1.000000"),
    ];
    let same = ("same", [1.0, NAN, INF], [1.0, NAN, INF], "");
    let bytes = |values: [f32; 3]| values.map(f32::to_le_bytes).concat();
    for (name, side) in [("a.safetensors", 0), ("b.safetensors", 1)] {
        let all =
            cases.iter().chain([&same]).map(|(key, a, b, _)| (*key, bytes(if side == 0 { *a } else { *b })));
        let all: Vec<(&str, Vec<u8>)> = all.collect();
        let tensors: Vec<_> = all.iter().map(|(key, bytes)| (*key, "F32", bytes.as_slice(), 3)).collect();
        file(&stage.path().join(name), &tensors);
    }
    let text = check(&stage, "surgery diff a.safetensors b.safetensors", 0).stdout;
    for (key, .., says) in cases {
        let line = text.lines().find(|line| line.trim_start().starts_with(key)).unwrap_or_default();
        assert!(line.ends_with(&format!("  {says}")), "{key}: {text}");
    }
    assert!(text.contains("NaN or infinite elements have no max, change or cosine\n"), "{text}");
    assert!(text.ends_with("  5 of 6 tensors differ, 1 is equal\n"), "{text}");
    let json = check(&stage, "surgery diff a.safetensors b.safetensors --json", 0).json();
    let of = |key: &str| {
        let tensors = json["tensors"].as_array().expect("a list");
        tensors.iter().find(|one| one["key"] == key).expect("it is there").clone()
    };
    let (sign, gone) = (of("sign"), of("gone"));
    assert_eq!(sign["not_finite"], serde_json::json!({"nan": [1, 1], "infinite": [1, 1], "only": [0, 0]}));
    assert_eq!(gone["not_finite"], serde_json::json!({"nan": [2, 0], "infinite": [0, 0], "only": [2, 0]}));
    assert!(gone["max"].is_null() && of("finite").get("not_finite").is_none(), "{json}");
}

#[test]
fn a_nan_is_counted_anywhere_in_a_long_tensor() {
    let stage = tempfile::tempdir().expect("a temporary directory");
    // Several windows, tiles and strips, and what is left.
    let length = 5_000_001;
    let (mut a, mut b) = (vec![0u8; 2 * length], vec![0u8; 2 * length]);
    let mut set = |side: usize, at: usize, bits: u16| {
        let side = if side == 0 { &mut a } else { &mut b };
        side[2 * at..2 * at + 2].copy_from_slice(&bits.to_le_bytes());
    };
    for at in [0, 1023, 1024, 32_768, 2_097_152, length - 1] {
        set(0, at, 0x7fc0);
        set(1, at + usize::from(at == 1023), 0x7f80);
    }
    file(&stage.path().join("a.safetensors"), &[("x", "BF16", &a, length)]);
    file(&stage.path().join("b.safetensors"), &[("x", "BF16", &b, length)]);
    let json = check(&stage, "surgery diff a.safetensors b.safetensors --json", 0).json();
    // 1023 in the second file is at 1024, which has one already.
    let expected = serde_json::json!({"nan": [6, 0], "infinite": [0, 5], "only": [1, 0]});
    assert_eq!(json["tensors"][0]["not_finite"], expected);
}
