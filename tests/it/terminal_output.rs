//! Plans and diagnostics on all kinds of terminals.

use mlxcel::internals::diagnostic::{Look, columns, render};
use mlxcel::internals::plan::{Detail, explain};
use mlxcel::{Checkpoint, SurgeryFile};

use crate::fixture::{Directives, Fixture};

const MANY: &str = r#"
version: 1
operations:
  - op: scale
    name: a name of some length that says what the operation is for
    pattern: "*"
    factor: 0.9500000001
  - op: prune
    granularity: attention_head
    pattern: "model.layers.{0..35}.self_attn.*"
    head_ids: [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]
  - op: replace
    pattern: "model.layers.{3..30}.mlp.up_proj.weight"
    source: "./a/directory/with/a/long/name/another-conversion-of-the-same-model.safetensors"
    source_key: "model.layers.0.mlp.up_proj.weight"
"#;

fn stage() -> Fixture {
    let stage = Fixture::new("qwen3-4b-4bit", MANY);
    Directives::default().make_donors(MANY, "qwen3-4b-4bit", stage.dir());
    stage
}

fn plan(stage: &Fixture, look: Look, all: bool) -> String {
    let file = SurgeryFile::read(&stage.dir().join("surgery.yaml"));
    let base = Checkpoint::open(&stage.dir().join("model")).expect("the base opens");
    let plan = mlxcel::plan(&file, base).expect("the file plans");
    explain(&plan, &file, look, Detail { all, warnings: true })
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let stage = stage();
    for width in [20, 40, 60, 80, 100, 120, 200] {
        for all in [false, true] {
            let text = plan(&stage, Look { width, unicode: true, colour: false }, all);
            let wide: Vec<&str> = text.lines().filter(|line| columns(line) > width).collect();
            assert!(wide.is_empty(), "{width}: {wide:#?}");
        }
    }
}

#[test]
fn excerpts_fit_narrow_terminals_but_for_names_that_stay_whole() {
    let text = "version: 1\noperations:\n  - {op: scale, pattern: 'model.layers.*.self_attn.o_proj.weigth', factr: 0.5}\n  \
                - op: prune\n    granularity: layer\n    pattern: \"model.layers.{0..35}.mlp.*\"\n    head_ids: [1]\n";
    let file = SurgeryFile::parse("surgery.yaml".as_ref(), text.as_bytes());
    let stage = Fixture::new("qwen3-4b", "version: 1\noperations: []\n");
    let base = Checkpoint::open(&stage.dir().join("model")).expect("the base opens");
    let found = mlxcel::plan(&file, base).expect_err("the file is refused").diagnostics;
    assert_eq!(found.len(), 3, "{found:#?}");
    for width in [30, 40, 60, 80, 200] {
        for unicode in [false, true] {
            let text = render(&found, Some(&file.source), Look { width, unicode, colour: false });
            // A name that is wider than the terminal has a line of its own, so that it can be copied.
            let whole = |line: &str| line.trim_start().starts_with('`') || line.starts_with("error[");
            let wide: Vec<&str> = text.lines().filter(|line| columns(line) > width && !whole(line)).collect();
            assert!(wide.is_empty(), "{width}: {wide:#?}");
            assert!(text.contains("`model.layers.*.self_attn.o_proj.weigth`"), "{width}: {text}");
        }
    }
}

#[test]
fn warnings_that_are_printed_elsewhere_are_left_out_and_notes_are_not() {
    let yaml = "version: 1\noperations:\n  - {op: scale, pattern: lm_head.weight, factor: 2}\n  \
                - {op: scale, pattern: model.norm.weight, factor: 1}\n";
    let stage = Fixture::new("llama-3.2-1b", yaml);
    let file = SurgeryFile::read(&stage.dir().join("surgery.yaml"));
    let base = Checkpoint::open(&stage.dir().join("model")).expect("the base opens");
    let plan = mlxcel::plan(&file, base).expect("the file plans");
    for warnings in [false, true] {
        let text = explain(&plan, &file, Look::PLAIN, Detail { all: false, warnings });
        assert_eq!(text.contains("(tied_embedding)"), warnings, "{text}");
        assert!(text.contains("(no_effect)") && text.contains("\n  1 of 146 tensors changes ·"), "{text}");
    }
}

#[test]
fn without_unicode_the_text_is_ascii() {
    let text = plan(&stage(), Look { unicode: false, ..Look::PLAIN }, false);
    let odd: Vec<&str> = text.lines().filter(|line| !line.is_ascii()).collect();
    assert!(odd.is_empty(), "{odd:#?}");
    assert!(text.contains("model.layers.{0-35}.self_attn.o_proj"), "{text}");
}

#[test]
fn colour_adds_escapes_and_nothing_else() {
    let stage = stage();
    let coloured = plan(&stage, Look { colour: true, ..Look::PLAIN }, false);
    assert!(coloured.contains("\x1b[1m"));
    let mut plain = String::new();
    for (at, part) in coloured.split('\x1b').enumerate() {
        plain += if at == 0 { part } else { part.split_once('m').expect("an escape has an end").1 };
    }
    assert_eq!(plain, plan(&stage, Look::PLAIN, false));
}

#[test]
fn a_directory_named_by_dots_is_shown_by_its_real_name() {
    let stage = Fixture::new("llama-3.2-1b", "version: 1\noperations: []\n");
    let run = crate::program::mlxcel(&stage.dir().join("model"), "surgery plan ../surgery.yaml --model .");
    assert!(run.stdout.starts_with("surgery.yaml  on  model  ("), "{run:?}");
}
