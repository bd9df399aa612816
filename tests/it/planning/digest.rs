//! A plan's digest: equal for equal work, different for different work.

use super::{file, model, planned};
use mlxcel::{Code, SurgeryFile, plan};

fn digest(operations: &str) -> Option<String> {
    planned("f16-sharded", operations).digest().map(str::to_owned)
}

const ADD: &str = "op: add, pattern: model.norm.weight, source: ../models/a.safetensors, alpha: 0.5";
const SCALE: &str = "op: scale, pattern: lm_head.weight, factor: 2";

#[test]
fn names_comments_spellings_and_dead_operations_do_not_enter() {
    let expected = digest(&format!("{ADD}\n{SCALE}"));
    assert!(expected.as_deref().is_some_and(|d| d.starts_with("sha256:") && d.len() == 7 + 64));
    let respelled = ADD.replace("../models", "./../models/../models").replace("0.5", "5.0e-1");
    for same in [
        format!("{SCALE}\n{ADD}"),
        format!("{respelled}\n{SCALE}, name: louder"),
        format!("{ADD}\n{SCALE}\nop: scale, pattern: \"*.mlp.*\", factor: 1"),
        format!(
            "op: add, pattern: lm_head.weight, source: ../models/b.safetensors, alpha: 0\n{ADD}\n{SCALE}"
        ),
    ] {
        assert_eq!(digest(&same), expected, "{same}");
    }
}

#[test]
fn a_whole_tensor_that_is_zeroed_makes_what_was_done_to_it_before_dead() {
    let prune = "op: prune, pattern: \"model.layers.*\", granularity: layer, layer_ids: [0]";
    let before = [
        "op: scale, pattern: \"model.layers.0.*\", factor: 2",
        "op: add, pattern: \"model.layers.0.mlp.*\", source: ../models/a.safetensors",
        prune,
    ];
    for before in before {
        let plan = planned("f16-sharded", &format!("{before}\n{prune}"));
        assert_eq!(plan.digest().map(str::to_owned), digest(prune), "{before}");
        let overwritten: Vec<_> =
            plan.diagnostics().iter().filter(|found| found.code == Code::Overwritten).collect();
        assert_eq!(overwritten.len(), 1, "{before}");
        assert!(overwritten[0].message.starts_with("later operations overwrite every edit"), "{before}");
    }
    let slices = "op: prune, pattern: \"*.mlp.*\", granularity: mlp_channel, channel_ids: [0]";
    assert_ne!(digest(&format!("{SCALE}\n{slices}")), digest(slices), "a part that is zeroed hides nothing");
}

#[test]
fn every_parameter_target_and_donor_enters() {
    let expected = digest(&format!("{ADD}\n{SCALE}"));
    for other in [
        format!("{ADD}\n{}", SCALE.replace('2', "2.0000000000000004")),
        format!("{}\n{SCALE}", ADD.replace("0.5", "-0.5")),
        format!("{}\n{SCALE}", ADD.replace("/a.", "/b.")),
        format!("{ADD}\n{}", SCALE.replace("lm_head", "model.norm")),
        ADD.to_owned(),
    ] {
        assert_ne!(digest(&other), expected, "{other}");
    }
}

#[test]
fn a_base_of_other_shapes_has_another_digest() {
    let scale = "op: scale, pattern: model.norm.weight, factor: 2";
    let digests = ["bf16", "gated", "ints"].map(|name| planned(name, scale).digest().map(str::to_owned));
    assert!(digests[0] != digests[1] && digests[0] != digests[2]);
}

#[test]
fn the_digest_is_this_one_for_ever() {
    let operations = format!("{ADD}\n{SCALE}");
    let seen = plan(&file(&operations), model("f16-sharded")).expect("a plan");
    assert_eq!(seen.digest(), Some(KNOWN));
}

#[test]
fn nothing_left_to_do_is_no_digest() {
    let path = std::path::Path::new("surgery.yaml");
    let empty = SurgeryFile::parse(path, b"version: 1\noperations: []\n");
    assert_eq!(plan(&empty, model("bf16")).expect("a plan").digest(), None);
    assert_eq!(digest("op: scale, pattern: lm_head.weight, factor: 1"), None);
}

/// SHA-256 of the document that the language describes, written with sorted names and hashed by another program.
const KNOWN: &str = "sha256:78e02069da559c75c5369d7be9f261b89f2a4fcf4572e146ee0729255a4ff58b";
