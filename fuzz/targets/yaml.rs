//! A surgery file: operations or mistakes, each in its place; patterns that match what they capture.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mlxcel::SurgeryFile;
use mlxcel::internals::diagnostic::{Look, github, json, render, sarif};
use mlxcel::internals::surgery::{Kind, Matcher};

const KEYS: [&str; 6] = [
    "",
    "model.norm.weight",
    "model.layers.0.mlp.down_proj.weight",
    "model.layers.11.self_attn.q_proj.scales",
    "lm_head.weight",
    "ü.*.[a]{b}",
];

fuzz_target!(|bytes: &[u8]| {
    let file = SurgeryFile::parse(Path::new("dir/surgery.yaml"), bytes);
    for found in &file.diagnostics {
        for label in &found.labels {
            assert!(file.source.text.get(label.span.clone()).is_some(), "{found:?}");
        }
    }
    let narrow = Look { width: 20, colour: false, unicode: false };
    for look in [Look::PLAIN, narrow] {
        let _ = render(&file.diagnostics, Some(&file.source), look);
    }
    assert_eq!(json(&file.diagnostics, Some(&file.source)).len(), file.diagnostics.len());
    assert_eq!(github(&file.diagnostics, Some(&file.source)).lines().count(), file.diagnostics.len());
    let _ = sarif(&[(&file.diagnostics, Some(&file.source))]);
    for operation in &file.operations {
        let matcher = Matcher::new(&operation.pattern.value);
        let pattern = &operation.pattern.value;
        for key in KEYS {
            assert!(key.starts_with(matcher.head()) || !matcher.matches(key), "{pattern:?} on {key}");
            if let Kind::Replace { source_key, .. } = &operation.kind {
                let captures = matcher.captures(key);
                assert_eq!(captures.is_some(), matcher.matches(key), "{pattern:?} on {key}");
                if let Some(captures) = captures {
                    assert_eq!(captures.0.len(), source_key.value.wildcards());
                }
            }
        }
    }
});
