//! Every family against an independent implementation: logits and greedy tokens of a small random model, in every
//! spelling of its configuration, whatever the pieces the prompt comes in.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use mlxcel::internals::load::{Loaded, Options, load};
use mlxcel::internals::model::{Model, run};
use mlxcel::internals::weights::Precision;
use mlxcel::{Checkpoint, Plan, SurgeryFile, plan};
use safetensors::SafeTensors;

/// What the other implementation computed.
pub(crate) struct Expected {
    pub(crate) tokens: Vec<u32>,
    pub(crate) logits: Vec<f32>,
    pub(crate) greedy: Vec<u32>,
}

fn families() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/conformance/families")
}

fn tales(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/tiny-tales").join(name)
}

pub(crate) fn expected(dir: &Path) -> Expected {
    let bytes = fs::read(dir.join("expected.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let words = |name: &str| -> Vec<[u8; 4]> {
        let data = tensors.tensor(name).unwrap().data();
        data.chunks_exact(4).map(|word| word.try_into().unwrap()).collect()
    };
    Expected {
        tokens: words("input_ids").into_iter().map(u32::from_le_bytes).collect(),
        logits: words("logits").into_iter().map(f32::from_le_bytes).collect(),
        greedy: words("greedy").into_iter().map(u32::from_le_bytes).collect(),
    }
}

pub(crate) fn open(dir: &Path) -> Loaded {
    load(Plan::identity(Checkpoint::open(dir).unwrap()), Options::default(), &mut |_| {}).unwrap()
}

pub(crate) fn operated(dir: &Path, yaml: &str) -> Loaded {
    operated_in(Precision::default(), dir, yaml)
}

fn operated_in(precision: Precision, dir: &Path, yaml: &str) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("surgery.yaml");
    fs::write(&path, yaml).unwrap();
    let file = SurgeryFile::read(&path);
    load(plan(&file, Checkpoint::open(dir).unwrap()).unwrap(), Options { precision }, &mut |_| {}).unwrap()
}

/// Logits of all positions, the text coming in pieces of `chunk`.
pub(crate) fn logits(model: &dyn Model, tokens: &[u32], chunk: usize) -> Vec<f32> {
    let mut all = Vec::new();
    let each = |_, piece: &[f32]| {
        all.extend_from_slice(piece);
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    run::score(model, &mut model.cache(), tokens, chunk, each).unwrap();
    all
}

pub(crate) fn greedy(model: &dyn Model, tokens: &[u32], count: usize) -> Vec<u32> {
    let mut cache = model.cache();
    let logits = run::prefill(model, &mut cache, tokens, 7, |_| ControlFlow::Continue(())).unwrap();
    let mut next = logits.unwrap().argmax().unwrap();
    let mut ids = next.ids().unwrap();
    while ids.len() < count {
        next = run::step(model, &mut cache, &next).unwrap().argmax().unwrap();
        ids.extend(next.ids().unwrap());
    }
    ids
}

#[track_caller]
fn check_close(what: &str, actual: &[f32], wanted: &[f32]) {
    check_within(1e-3, what, actual, wanted);
}

#[track_caller]
fn check_within(relative: f32, what: &str, actual: &[f32], wanted: &[f32]) {
    assert_eq!(actual.len(), wanted.len(), "{what}");
    let largest = wanted.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let worst = actual.iter().zip(wanted).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
    assert!(worst <= relative * largest, "{what}: off by {worst}, the largest logit is {largest}");
}

/// Logits whatever the pieces, and greedy tokens.
#[track_caller]
pub(crate) fn check_model(what: &str, model: &dyn Model, wanted: &Expected) {
    for chunk in [wanted.tokens.len(), 5, 1] {
        let what = format!("{what}, pieces of {chunk}");
        check_close(&what, &logits(model, &wanted.tokens, chunk), &wanted.logits);
    }
    assert_eq!(greedy(model, &wanted.tokens, wanted.greedy.len()), wanted.greedy, "{what}");
}

#[track_caller]
fn check(dir: &Path) {
    let family = dir.file_name().unwrap().to_string_lossy();
    let wanted = expected(dir);
    check_model(&family, open(dir).model.as_ref(), &wanted);
    let older = dir.join("config.rope_theta.json");
    if older.exists() {
        let copy = tempfile::tempdir().unwrap();
        fs::copy(&older, copy.path().join("config.json")).unwrap();
        fs::copy(dir.join("model.safetensors"), copy.path().join("model.safetensors")).unwrap();
        check_model(&format!("{family}, older spelling"), open(copy.path()).model.as_ref(), &wanted);
    }
}

#[test]
fn every_family_agrees_in_every_spelling_whatever_the_pieces() {
    let mut names: Vec<PathBuf> =
        fs::read_dir(families()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert_eq!(names.len(), 19, "{names:?}");
    for dir in names {
        check(&dir);
    }
}

/// Configurations that the families' own directories lack, with their weights.
#[test]
fn variants_of_families_agree() {
    let dir = families().with_file_name("variants");
    let mut names: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert_eq!(names.len(), 9, "{names:?}");
    for dir in names {
        let name = dir.file_name().unwrap().to_string_lossy();
        let weights = families().join(name.split('+').next().unwrap()).join("model.safetensors");
        let copy = tempfile::tempdir().unwrap();
        fs::copy(dir.join("config.json"), copy.path().join("config.json")).unwrap();
        fs::copy(weights, copy.path().join("model.safetensors")).unwrap();
        check_model(&name, open(copy.path()).model.as_ref(), &expected(&dir));
    }
}

/// Against the reference implementation with hooks in it: the slice of a head zeroed before `o_proj`, a block skipped,
/// a projection scaled.
#[test]
fn surgery_does_to_every_family_what_hooks_do_to_the_reference() {
    let mut count = 0;
    for entry in fs::read_dir(families()).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(bytes) = fs::read(dir.join("operated.safetensors")) else { continue };
        count += 1;
        let references = SafeTensors::deserialize(&bytes).unwrap();
        let family = dir.file_name().unwrap().to_string_lossy();
        // Norms over all heads of queries would make the other heads larger if this one's rows were zero.
        let head = if family == "olmo2" { "self_attn.o_proj.weight" } else { "self_attn.*" };
        let scaled = match &*family {
            "phi3" => "mlp.gate_up_proj",
            "mixtral" | "qwen3_moe" => "self_attn.o_proj",
            _ => "mlp.gate_proj",
        };
        let tokens = expected(&dir).tokens;
        for (name, operation) in [
            (
                "head",
                format!(
                    "{{op: prune, granularity: attention_head, pattern: 'model.layers.1.{head}', head_ids: [2]}}"
                ),
            ),
            (
                "layer",
                "{op: prune, granularity: layer, pattern: 'model.layers.*', layer_ids: [1]}".to_owned(),
            ),
            ("scale", format!("{{op: scale, pattern: 'model.layers.1.{scaled}.*', factor: 1.5}}")),
        ] {
            let loaded = operated(&dir, &format!("version: 1\noperations:\n  - {operation}\n"));
            let found = logits(loaded.model.as_ref(), &tokens, 64);
            let data = references.tensor(name).unwrap().data().chunks_exact(4);
            let wanted: Vec<f32> = data.map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect();
            check_close(&format!("{family}, {name}"), &found[found.len() - wanted.len()..], &wanted);
        }
    }
    assert_eq!(count, 13);
}

/// Several texts of different lengths, each going on with its own tokens: as one batch, and each alone.
#[track_caller]
fn check_batch(dir: &Path) {
    const STEPS: usize = 8;
    let loaded = open(dir);
    let model = loaded.model.as_ref();
    let text = |len: usize, seed: u32| -> Vec<u32> {
        (0..len).zip(seed..).map(|(_, i)| (i * 37 + 11) % 128).collect()
    };
    let prompts = [text(5, 0), text(40, 3), text(17, 9)];
    let mut caches = Vec::new();
    let mut first = Vec::new();
    for prompt in &prompts {
        let mut cache = model.cache();
        let logits = run::prefill(model, &mut cache, prompt, 16, |_| ControlFlow::Continue(())).unwrap();
        first.extend(logits.unwrap().argmax().unwrap().ids().unwrap());
        caches.push(cache);
    }
    let (mut alone, mut tokens) = (caches.clone(), first.clone());
    for at in 0..STEPS {
        let what = format!("{}, step {at}", dir.display());
        let batched = run::step_batch(model, &mut caches, &run::Tokens::new(&tokens).unwrap()).unwrap();
        let values = batched.values().unwrap();
        let mut next = Vec::new();
        for ((cache, token), row) in alone.iter_mut().zip(&tokens).zip(values.chunks(model.vocabulary())) {
            let single = run::step(model, cache, &run::Tokens::new(&[*token]).unwrap()).unwrap();
            check_within(1e-5, &what, row, &single.values().unwrap());
            next.extend(single.argmax().unwrap().ids().unwrap());
        }
        tokens = batched.argmax().unwrap().ids().unwrap();
        assert_eq!(tokens, next, "{what}");
    }
    assert!(run::step_batch(model, &mut caches[..2], &run::Tokens::new(&tokens).unwrap()).is_err());
}

#[test]
fn sequences_of_different_lengths_share_a_step_as_if_each_were_alone() {
    for family in ["llama", "llama-4bit", "mistral", "gemma2", "gemma3_text", "qwen3_moe", "olmo2"] {
        check_batch(&families().join(family));
    }
    check_batch(&tales("base"));
}

#[test]
fn no_operations_give_the_same_logits_bit_for_bit() {
    for (dir, tokens) in [(tales("base"), 300), (families().join("llama-4bit"), 90)] {
        let tokens: Vec<u32> = (0..tokens).map(|i| (i * 37 + 11) % 128).collect();
        let plain = logits(open(&dir).model.as_ref(), &tokens, 256);
        let none = logits(operated(&dir, "version: 1\noperations: []\n").model.as_ref(), &tokens, 256);
        assert!(plain.iter().map(|x| x.to_bits()).eq(none.iter().map(|x| x.to_bits())));
    }
}

#[test]
fn the_whole_task_vector_makes_the_tuned_model() {
    let vector = tales("task_vector.safetensors");
    let yaml = format!(
        "version: 1\noperations:\n  - op: add\n    pattern: '*'\n    source: '{}'\n    alpha: 1.0\n",
        vector.display()
    );
    let prompt = [79, 110, 101, 32, 109, 111, 114, 110];
    let edited = greedy(operated(&tales("base"), &yaml).model.as_ref(), &prompt, 64);
    assert_eq!(edited, greedy(open(&tales("tuned")).model.as_ref(), &prompt, 64));
    assert_ne!(edited, greedy(open(&tales("base")).model.as_ref(), &prompt, 64));
}

/// Gemma 3 was trained in bf16, and what its blocks add up to goes beyond what f16 holds.
#[test]
fn the_residual_stream_of_gemma3_stays_finite_in_f16() {
    let yaml = "version: 1\noperations:\n  - op: scale\n    pattern: '*.post_*_layernorm.weight'\n    factor: 1.0e+6\n";
    let tokens: Vec<u32> = (0..12).collect();
    let finite = |family: &str| {
        let loaded = operated_in(Precision::F16, &families().join(family), yaml);
        logits(loaded.model.as_ref(), &tokens, 16).iter().all(|logit| logit.is_finite())
    };
    assert!(finite("gemma3_text"));
    // The same weights go beyond it where nothing bounds them, or this would test nothing.
    assert!(!finite("gemma2"));
}
