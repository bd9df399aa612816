use proptest::prelude::*;
use safetensors::SafeTensors;
use serde_json::{Map, Value, json};

use super::super::{fast, strict};
use super::parse;

/// A file as the format's own crate reads it: all data zero.
pub(super) fn by_the_crate(text: &str, data: usize) -> bool {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    SafeTensors::deserialize(&bytes).is_ok()
}

fn tensors() -> impl Strategy<Value = (Map<String, Value>, u64)> {
    let dtype =
        prop_oneof![Just(("U8", 1)), Just(("F16", 2)), Just(("BF16", 2)), Just(("F32", 4)), Just(("F64", 8))];
    let name = prop_oneof!["[a-c]{0,2}", r#"[\\\PC"]{1,6}"#];
    let tensor = (name, dtype, prop::collection::vec(0_u64..4, 0..4));
    (prop::collection::vec(tensor, 0..6), any::<bool>()).prop_map(|(list, backwards)| {
        let mut at = 0;
        let mut map = Map::new();
        for (name, (dtype, size), shape) in list {
            if map.contains_key(&name) || name == "__metadata__" {
                continue;
            }
            let end = at + shape.iter().product::<u64>() * size;
            map.insert(name, json!({"dtype": dtype, "shape": shape, "data_offsets": [at, end]}));
            at = end;
        }
        let map = if backwards { map.into_iter().rev().collect() } else { map };
        (map, at)
    })
}

/// A text in which characters are replaced (0), inserted (1) or taken away.
fn damaged(text: &str, damage: Vec<(prop::sample::Index, usize, String)>) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for (place, kind, with) in damage {
        let Some(at) = (!text.is_empty()).then(|| place.index(text.len())) else { continue };
        let with = with.chars().next().unwrap_or(' ');
        match kind {
            0 => text[at] = with,
            1 => text.insert(at, with),
            _ => drop(text.remove(at)),
        }
    }
    text.into_iter().collect()
}

#[test]
fn what_writers_write_goes_the_quick_way() {
    let entry = r#"{"dtype":"BF16","shape":[2, 3],"data_offsets":[0,12]}"#;
    for text in [
        format!(r#"{{"__metadata__":{{"format":"pt","json":"{{\"a\":1}}"}},"é.weight":{entry}}}    "#),
        format!("{{\n  \"x\" : {entry},\t\"__metadata__\": null\r\n}}"),
        r#"{"x":{"shape":[],"data_offsets":[0,4],"dtype":"F32"}}"#.to_owned(),
    ] {
        let quick = fast::read(&text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(format!("{:?}", Ok::<_, String>(quick)), format!("{:?}", strict::read(&text)));
    }
}

#[test]
fn what_is_unusual_does_not_go_the_quick_way() {
    let dims = vec!["1"; 65].join(",");
    for text in [
        "",
        "{",
        "{}",
        "[]",
        r#"{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#,
        r#"{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}} x"#,
        r#"{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},}"#,
        r#"{"x":{"dtype":"U8","shape":[1,],"data_offsets":[0,1]}}"#,
        r#"{"x":{"dtype":"U8","shape":[01],"data_offsets":[0,1]}}"#,
        r#"{"x":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}"#,
        r#"{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}"#,
        r#"{"x":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}}"#,
        r#"{"x":{"dtype":"U8","shape":[0],"data_offsets":[18446744073709551616,18446744073709551616]}}"#,
        r#"{"\u0078":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
        r#"{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":0}}"#,
        r#"{"x":{"dtype":"U7","shape":[1],"data_offsets":[0,1]}}"#,
        r#"{"x":{"dtype":"U8","shape":[1]}}"#,
        r#"{"__metadata__":{},"__metadata__":{}}"#,
        r#"{"__metadata__":{"a":1}}"#,
        "{\"a\nb\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
        &format!(r#"{{"x":{{"dtype":"U8","shape":[{dims}],"data_offsets":[0,1]}}}}"#),
    ] {
        assert!(fast::read(text).is_none(), "{text}");
    }
}

proptest! {
    /// The quick way and the descent read the same, however the header is spaced and damaged.
    #[test]
    fn both_ways_lead_to_the_same(
        (map, _) in tensors(),
        metadata in prop::option::of(prop::collection::btree_map("[a-c\"\\\\]{0,3}", "\\PC{0,4}", 0..3)),
        pretty in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..3, "[0-9\\]\\[{}\",:a-z \\\\.-]"), 0..2),
    ) {
        let mut map = map;
        if let Some(metadata) = metadata {
            map.insert("__metadata__".to_owned(), json!(metadata));
        }
        let text = if pretty { serde_json::to_string_pretty(&map) } else { serde_json::to_string(&map) };
        let text = damaged(&text.unwrap(), damage);
        if let Some(quick) = fast::read(&text) {
            prop_assert_eq!(format!("{:?}", Ok::<_, String>(quick)), format!("{:?}", strict::read(&text)));
        }
    }

    #[test]
    fn valid_headers_read_as_the_crate_reads_them((map, data) in tensors()) {
        let text = serde_json::to_string(&map).unwrap();
        let header = parse(&text, data).unwrap();
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len() + usize::try_from(data).unwrap(), 0);
        let (length, theirs) = SafeTensors::read_metadata(&bytes).unwrap();
        prop_assert_eq!(header.tensors.len(), theirs.tensors().len());
        for tensor in &header.tensors {
            let info = theirs.info(tensor.key.as_str()).unwrap();
            let start = 8 + length as u64;
            let range = start + info.data_offsets.0 as u64..start + info.data_offsets.1 as u64;
            prop_assert_eq!((tensor.dtype, &tensor.shape, &tensor.range), (info.dtype, &info.shape, &range));
        }
    }

    /// Whatever happens to a header, it is read or refused; and what is read without trailing bytes, the crate reads.
    #[test]
    fn damaged_headers_are_answered(
        (map, data) in tensors(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..3, "[0-9\\]\\[{}\",:a-z \\\\.-]"), 1..4),
        more in 0_u64..3,
    ) {
        let text = damaged(&serde_json::to_string(&map).unwrap(), damage);
        if let Ok(header) = parse(&text, data + more) {
            let data = usize::try_from(data + more - header.trailing).unwrap();
            prop_assert!(by_the_crate(&text, data), "only we accept {}", text);
        }
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,80}", length in 0_u64..100) {
        let _ = parse(&text, length);
    }
}
