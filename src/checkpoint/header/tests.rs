use serde_json::json;

use super::Header;

mod properties;
use properties::by_the_crate;

/// Parses a header whose data, of `data` bytes, begins right behind it.
fn parse(text: &str, data: u64) -> Result<Header, String> {
    let start = 8 + text.len() as u64;
    Header::parse(text, start, start + data).map_err(|refused| refused.reason)
}

#[track_caller]
fn accepted(text: &str, data: u64) -> Header {
    parse(text, data).unwrap_or_else(|reason| panic!("{reason}\n{text}"))
}

#[track_caller]
fn refused(text: &str, data: u64, reason: &str) {
    match parse(text, data) {
        Ok(header) => panic!("accepted: {header:?}"),
        Err(said) => assert_eq!(said, reason, "\n{text}"),
    }
}

/// A header of one tensor `x`, with these fields.
#[track_caller]
fn refused_entry(entry: &str, reason: &str) {
    refused(&format!(r#"{{"x":{entry}}}"#), 16, reason);
}

#[test]
fn tensors_come_out_in_file_order_with_absolute_ranges() {
    let text = r#"{"b":{"dtype":"F32","shape":[2],"data_offsets":[6,14]},
        "a":{"data_offsets":[0,6],"dtype":"BF16","note":{"any":[1]},"shape":[1,3]}}"#;
    let header = accepted(text, 14);
    let start = 8 + text.len() as u64;
    let seen: Vec<_> =
        header.tensors.iter().map(|t| (t.key.as_str(), t.dtype.to_string(), &*t.shape)).collect();
    assert_eq!(seen, [("a", "BF16".into(), &[1, 3][..]), ("b", "F32".into(), &[2][..])]);
    assert_eq!(header.tensors[0].range, start..start + 6);
    assert_eq!(header.tensors[1].range, start + 6..start + 14);
    assert_eq!((header.metadata, header.trailing), (None, 0));
}

#[test]
fn scalars_empty_tensors_and_no_tensors_are_fine() {
    accepted("{}", 0);
    let scalar = accepted(r#"{"s":{"dtype":"F16","shape":[],"data_offsets":[0,2]}}"#, 2);
    assert!(scalar.tensors[0].shape.is_empty());
    let text = r#"{"e":{"dtype":"F16","shape":[0,5],"data_offsets":[2,2]},"x":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},
        "f":{"dtype":"F16","shape":[3,0],"data_offsets":[0,0]}}"#;
    let keys: Vec<_> = accepted(text, 2).tensors.iter().map(|t| t.key.to_string()).collect();
    assert_eq!(keys, ["f", "x", "e"]);
}

#[test]
fn metadata_is_kept_in_file_order() {
    let pairs = |text: &str| accepted(text, 0).metadata;
    assert_eq!(pairs(r#"{"__metadata__":null}"#), None);
    assert_eq!(pairs(r#"{"__metadata__":{}}"#), Some(vec![]));
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(
        pairs(r#"{"__metadata__":{"z":"1","a":"\u00e9"}}"#),
        Some(vec![pair("z", "1"), pair("a", "é")])
    );
}

#[test]
fn metadata_must_be_strings() {
    refused(
        r#"{"__metadata__":{"a":1}}"#,
        0,
        "`__metadata__`: invalid type: integer `1`, expected a string at line 1 column 22",
    );
    refused(
        r#"{"__metadata__":"a"}"#,
        0,
        "`__metadata__`: invalid type: string \"a\", expected an object of strings at line 1 column 19",
    );
    refused(r#"{"__metadata__":{},"__metadata__":{}}"#, 0, "two `__metadata__`");
}

#[test]
fn metadata_must_have_each_name_once() {
    refused(r#"{"__metadata__":{"a":"1","b":"2","a":"1"}}"#, 0, "`__metadata__` has two `a`");
    // By the long way: with an escape in a tensor's name, and by the quick way behind a tensor.
    refused(r#"{"__metadata__":{"\u0061":"1","a":"2"},"\u0078":{}}"#, 0, "`__metadata__` has two `a`");
    let entry = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    refused(&format!(r#"{{"x":{entry},"__metadata__":{{"":"","":""}}}}"#), 0, "`__metadata__` has two ``");
}

#[test]
fn only_what_a_writer_cannot_have_meant_is_called_damage() {
    let help = |text: &str| Header::parse(text, 8, 8).expect_err("it is refused").help;
    let entry = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    let long = "x".repeat(4097);
    for (text, word) in [
        (format!(r#"{{"{long}":{entry}}}"#), "at most 4,096 bytes"),
        (format!(r#"{{"a\u0007":{entry}}}"#), "printable"),
        (format!(r#"{{"x":{entry},"x":{entry}}}"#), "each name once"),
        (r#"{"__metadata__":{"a":"","a":""}}"#.to_owned(), "each name once"),
        (r#"{"x":{"dtype":"Q8"}}"#.to_owned(), "convert"),
        (r#"{"x":{"shape":[2147483648]}}"#.to_owned(), "another shape"),
        (r#"{"x":{"shape":[-1]}}"#.to_owned(), "damaged"),
        (r#"{"x":{}}"#.to_owned(), "damaged"),
        ("{".to_owned(), "damaged"),
    ] {
        assert!(help(&text).contains(word), "{text}: {}", help(&text));
    }
}

#[test]
fn names_with_escapes_are_read() {
    let header = accepted(r#"{"caf\u00e9 \"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, 1);
    assert_eq!(header.tensors[0].key.as_str(), "café \"");
}

#[test]
fn a_name_that_is_there_twice_is_refused_however_it_is_spelled() {
    let entry = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    refused(&format!(r#"{{"x":{entry},"x":{entry}}}"#), 0, "two tensors are named `x`");
    refused(&format!(r#"{{"x":{entry},"\u0078":{entry}}}"#), 0, "two tensors are named `x`");
}

#[test]
fn messages_show_hostile_names_harmlessly() {
    let entry = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    refused(
        &format!(r#"{{"\u001b[2J":{entry}}}"#),
        0,
        r"the name `\u{1b}[2J` has a control character, \u{1b}",
    );
    refused(
        &format!(r#"{{"a\u202eb":{entry}}}"#),
        0,
        "the name `a\\u{202e}b` has a control character, \\u{202e}",
    );
    let longest = format!(r#"{{"{}":{entry}}}"#, "x".repeat(4097));
    assert!(parse(&longest, 0).unwrap_err().ends_with("has 4097 bytes, more than 4096"));
    let long = "x".repeat(1000);
    let reason = parse(&format!(r#"{{"{long}":{entry},"{long}":{entry}}}"#), 0).unwrap_err();
    assert!(reason.len() < 250, "{reason}");
}

#[test]
fn what_is_not_a_json_object_is_refused() {
    refused("", 0, "the header is not JSON: EOF while parsing a value at line 1 column 0");
    refused("{\"x\":", 0, "the header is not JSON: EOF while parsing a value at line 1 column 5");
    refused("{} x", 0, "the header is not JSON: trailing characters at line 1 column 4");
    refused("{}\0", 0, "the header is not JSON: trailing characters at line 1 column 3");
    let list = "the header is not a JSON object: invalid type: sequence, expected an object of tensors at line 1 column 0";
    refused("[]", 0, list);
}

#[test]
fn white_space_around_the_header_is_fine() {
    accepted(" \n{}\t   ", 0);
}

#[test]
fn unknown_fields_are_still_json() {
    let note = |note: &str| {
        let text = format!(r#"{{"x":{{"dtype":"U8","shape":[1],"data_offsets":[0,1],"note":{note}}}}}"#);
        assert_eq!(parse(&text, 1).is_ok(), by_the_crate(&text, 1), "{note}");
        parse(&text, 1).map(|header| header.tensors.len())
    };
    assert_eq!(note(r#"[null, true, -1, 1.5e3, "\u00e9", {"a": [{}]}]"#), Ok(1));
    assert!(note("1e355").unwrap_err().starts_with("the header is not JSON: number out of range"));
    assert!(
        note(&"[".repeat(200)).unwrap_err().starts_with("the header is not JSON: recursion limit exceeded")
    );
}

#[test]
fn an_entry_must_have_its_three_fields_once() {
    refused_entry("{}", "tensor `x` has no `dtype`");
    refused_entry(r#"{"dtype":"U8"}"#, "tensor `x` has no `shape`");
    refused_entry(r#"{"dtype":"U8","shape":[16]}"#, "tensor `x` has no `data_offsets`");
    refused_entry(r#"{"dtype":"U8","dtype":"U8"}"#, "tensor `x` has two `dtype`");
    refused_entry(r#"{"shape":[1],"shape":[1]}"#, "tensor `x` has two `shape`");
    refused_entry(r#"{"data_offsets":[0,1],"data_offsets":[0,1]}"#, "tensor `x` has two `data_offsets`");
    refused_entry(
        "[]",
        "tensor `x`: invalid type: sequence, expected an object with dtype, shape and data_offsets at line 1 column 5",
    );
    refused_entry(
        r#"{"dtype":8}"#,
        "tensor `x`: invalid type: integer `8`, expected a string at line 1 column 15",
    );
    refused_entry(
        r#"{"shape":3}"#,
        "tensor `x`: invalid type: integer `3`, expected a list of at most 64 integers at line 1 column 15",
    );
}

#[test]
fn an_unknown_dtype_is_named() {
    refused_entry(r#"{"dtype":"Q8"}"#, "tensor `x` has dtype `Q8`, which safetensors does not know");
    refused_entry(r#"{"dtype":"bf16"}"#, "tensor `x` has dtype `bf16`, which safetensors does not know");
}

#[test]
fn dtypes_that_mlx_cannot_load_are_fine_in_a_header() {
    for (dtype, bytes) in
        [("F64", 128), ("F8_E5M2", 16), ("F8_E4M3FNUZ", 16), ("F4", 8), ("F6_E2M3", 12), ("C64", 128)]
    {
        accepted(&format!(r#"{{"x":{{"dtype":"{dtype}","shape":[16],"data_offsets":[0,{bytes}]}}}}"#), bytes);
    }
}

#[test]
fn a_shape_entry_is_a_whole_number_that_fits_i32() {
    let entry = |entry: &str, said: &str| {
        refused_entry(
            &format!(r#"{{"dtype":"U8","shape":[{entry}],"data_offsets":[0,16]}}"#),
            &format!("tensor `x` has a shape entry {said}, which is not an integer below 2^31"),
        );
    };
    entry("-1,-16", "-1");
    entry("16.0", "16.0");
    entry("1e1", "10.0");
    entry("2147483648", "2147483648");
    entry("18446744073709551616", "18446744073709551616");
    let largest = r#"{"x":{"dtype":"U8","shape":[0,2147483647],"data_offsets":[0,0]}}"#;
    accepted(largest, 0);
}

#[test]
fn a_shape_has_a_limit() {
    let ones = vec!["1"; 65].join(",");
    let reason = parse(&format!(r#"{{"x":{{"shape":[{ones}]}}}}"#), 1).unwrap_err();
    assert!(reason.starts_with("tensor `x`: invalid length 65, expected a list of at most 64"), "{reason}");
}

#[test]
fn offsets_are_two_whole_numbers_in_order() {
    let offsets = |offsets: &str, reason: &str| {
        refused_entry(&format!(r#"{{"dtype":"U8","shape":[16],"data_offsets":{offsets}}}"#), reason);
    };
    offsets("[0]", "tensor `x` has 1 data offsets, not 2");
    offsets("[]", "tensor `x` has 0 data offsets, not 2");
    offsets("[-1,15]", "tensor `x` has a data offset -1, which is not an integer below 2^64");
    offsets("[0,16.5]", "tensor `x` has a data offset 16.5, which is not an integer below 2^64");
    offsets("[16,0]", "tensor `x` ends (byte 0) before it begins (byte 16)");
    let three = parse(r#"{"x":{"data_offsets":[0,8,16]}}"#, 16).unwrap_err();
    assert!(three.starts_with("tensor `x`: invalid length 3"), "{three}");
}

#[test]
fn a_size_must_agree_with_shape_and_dtype() {
    let entry = |dtype: &str, shape: &str, end: u64| {
        format!(r#"{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{end}]}}"#)
    };
    refused_entry(&entry("BF16", "[8]", 14), "tensor `x` has 14 bytes of data, but BF16 [8] takes 16");
    refused_entry(&entry("F32", "[]", 0), "tensor `x` has 0 bytes of data, but F32 [] takes 4");
    refused_entry(&entry("F32", "[0]", 4), "tensor `x` has 4 bytes of data, but F32 [0] takes 0");
    refused_entry(&entry("F4", "[3]", 2), "tensor `x`: F4 [3] is not a whole number of bytes, or too large");
    let huge = "[2147483647, 2147483647, 2147483647]";
    refused_entry(
        &entry("U8", huge, 16),
        &format!("tensor `x`: U8 {huge} is not a whole number of bytes, or too large"),
    );
}

/// Two F16 tensors of four elements at these offsets.
fn two(x: [u64; 2], y: [u64; 2]) -> String {
    let entry = |[start, end]: [u64; 2]| json!({"dtype": "F16", "shape": [(end - start) / 2], "data_offsets": [start, end]});
    json!({"x": entry(x), "y": entry(y)}).to_string()
}

#[test]
fn tensors_fill_the_data_without_overlap_or_hole() {
    accepted(&two([0, 8], [8, 16]), 16);
    accepted(&two([8, 16], [0, 8]), 16);
    refused(&two([0, 8], [4, 12]), 12, "tensor `y` (bytes 4..12 of the data) overlaps `x` (bytes 0..8)");
    refused(&two([0, 8], [0, 8]), 8, "tensor `y` (bytes 0..8 of the data) overlaps `x` (bytes 0..8)");
    refused(&two([0, 16], [4, 4]), 16, "tensor `y` (bytes 4..4 of the data) overlaps `x` (bytes 0..16)");
    refused(&two([0, 8], [12, 20]), 20, "no tensor covers bytes 8..12 of the data, before `y`");
    refused(&two([2, 8], [8, 16]), 16, "no tensor covers bytes 0..2 of the data, before `x`");
}

#[test]
fn data_past_the_end_is_counted() {
    refused(
        &two([0, 8], [8, 16]),
        15,
        "1 byte short (interrupted download?): the file has 15 bytes of data, and `y` takes bytes 8..16",
    );
    refused(
        &two([0, 8], [8, 16]),
        2,
        "14 bytes short (interrupted download?): the file has 2 bytes of data, and `x` takes bytes 0..8",
    );
}

#[test]
fn trailing_bytes_are_counted() {
    assert_eq!(accepted(&two([0, 8], [8, 16]), 20).trailing, 4);
    assert_eq!(accepted("{}", 3).trailing, 3);
}
