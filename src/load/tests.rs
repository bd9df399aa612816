//! Quantized checkpoints, made here with MLX's own quantizer: they compute what their dequantized weights compute.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{LoadError, Loaded, Options, load};
use crate::checkpoint::{Checkpoint, Dtype as Stored};
use crate::mlx::{Array, Dtype, Mode, Packed, Packing};
use crate::model::run;
use crate::plan::Plan;
use crate::weights::Precision;

const HIDDEN: i32 = 128;
const INNER: i32 = 256;
const VOCABULARY: i32 = 64;

/// Name and shape of every matrix of a small llama.
fn matrices() -> Vec<(&'static str, [i32; 2])> {
    vec![
        ("model.embed_tokens", [VOCABULARY, HIDDEN]),
        ("model.layers.0.self_attn.q_proj", [HIDDEN, HIDDEN]),
        ("model.layers.0.self_attn.k_proj", [HIDDEN / 2, HIDDEN]),
        ("model.layers.0.self_attn.v_proj", [HIDDEN / 2, HIDDEN]),
        ("model.layers.0.self_attn.o_proj", [HIDDEN, HIDDEN]),
        ("model.layers.0.mlp.gate_proj", [INNER, HIDDEN]),
        ("model.layers.0.mlp.up_proj", [INNER, HIDDEN]),
        ("model.layers.0.mlp.down_proj", [HIDDEN, INNER]),
        ("lm_head", [VOCABULARY, HIDDEN]),
    ]
}

fn config() -> Value {
    json!({
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "vocab_size": VOCABULARY,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "tie_word_embeddings": false,
    })
}

/// Numbers without a pattern, around 0.
fn weight(seed: u32, shape: [i32; 2]) -> Array {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(97);
    let values: Vec<f32> = (0..shape[0] * shape[1])
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(state >> 16).unwrap()) / 65_536.0 - 0.5
        })
        .collect();
    Array::from_f32(&values, &shape).unwrap()
}

/// A checkpoint to be written.
#[derive(Default)]
struct Tensors(BTreeMap<String, (Stored, Vec<usize>, Vec<u8>)>);

impl Tensors {
    fn put(&mut self, key: String, array: &Array) {
        let shape = array.shape().iter().map(|&n| usize::try_from(n).unwrap()).collect();
        let (dtype, bytes) = match array.dtype() {
            Dtype::Uint32 => {
                (Stored::U32, array.to_u32().unwrap().iter().flat_map(|x| x.to_le_bytes()).collect())
            }
            Dtype::Uint8 => {
                let narrow = |x: &u32| u8::try_from(*x).unwrap();
                (Stored::U8, array.to_u32().unwrap().iter().map(narrow).collect())
            }
            _ => (Stored::F32, array.to_f32().unwrap().iter().flat_map(|x| x.to_le_bytes()).collect()),
        };
        self.0.insert(key, (dtype, shape, bytes));
    }

    fn put_packed(&mut self, module: &str, packed: &Packed) {
        self.put(format!("{module}.weight"), &packed.codes);
        self.put(format!("{module}.scales"), &packed.scales);
        if let Some(biases) = &packed.biases {
            self.put(format!("{module}.biases"), biases);
        }
    }

    fn write(mut self, config: &Value) -> TempDir {
        for norm in ["layers.0.input_layernorm", "layers.0.post_attention_layernorm", "norm"] {
            let ones = Array::from_f32(&[1.0; 128], &[HIDDEN]).unwrap();
            self.put(format!("model.{norm}.weight"), &ones);
        }
        let views = self.0.iter().map(|(key, (dtype, shape, bytes))| {
            (key.as_str(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        let dir = tempfile::tempdir().unwrap();
        safetensors::serialize_to_file(views, None, &dir.path().join("model.safetensors")).unwrap();
        std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
        dir
    }
}

/// The same model packed (each module as `choose` says, or not at all) and dequantized.
fn pair(choose: impl Fn(&str) -> Option<Packing>, change: impl FnOnce(&mut Value)) -> (TempDir, TempDir) {
    let (mut packed, mut dense) = (Tensors::default(), Tensors::default());
    for (seed, (module, shape)) in (1..).zip(matrices()) {
        let weight = weight(seed, shape);
        match choose(module) {
            None => {
                packed.put(format!("{module}.weight"), &weight);
                dense.put(format!("{module}.weight"), &weight);
            }
            Some(packing) => {
                let codes = Packed::quantize(&weight, packing);
                packed.put_packed(module, &codes);
                let unpacked = codes.dequantize(Dtype::Float32).unwrap();
                dense.put(format!("{module}.weight"), &unpacked);
            }
        }
    }
    let mut quantized = config();
    change(&mut quantized);
    (packed.write(&quantized), dense.write(&config()))
}

fn open(dir: &Path, precision: Precision) -> Loaded {
    let plan = Plan::identity(Checkpoint::open(dir).unwrap());
    load(plan, Options { precision }, &mut |_| {}).unwrap()
}

fn logits(loaded: &Loaded) -> Vec<f32> {
    let model = loaded.model.as_ref();
    let tokens: Vec<u32> = (0..24).map(|i| (i * 29 + 3) % 64).collect();
    let mut all = Vec::new();
    let each = |_, piece: &[f32]| {
        all.extend_from_slice(piece);
        Ok::<_, crate::mlx::Error>(())
    };
    run::score(model, &mut model.cache(), &tokens, 24, each).unwrap();
    all
}

#[track_caller]
fn check_close(what: &str, found: &[f32], wanted: &[f32], relative: f32) {
    assert_eq!(found.len(), wanted.len());
    let largest = wanted.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let worst = found.iter().zip(wanted).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
    assert!(worst <= relative * largest, "{what}: off by {worst}, the largest logit is {largest}");
}

/// Dequantized while loading, and (in the dtype that is stored) computed with as they are.
#[track_caller]
fn check(what: &str, (packed, dense): &(TempDir, TempDir)) {
    let wanted = logits(&open(dense.path(), Precision::F32));
    let unpacked = open(packed.path(), Precision::Auto);
    check_close(what, &logits(&unpacked), &wanted, 1e-4);
    check_close(&format!("{what}, packed"), &logits(&open(packed.path(), Precision::Native)), &wanted, 1e-3);
}

fn affine(bits: i32, group_size: i32) -> Packing {
    Packing { mode: Mode::Affine, bits, group_size }
}

#[test]
fn every_affine_format_computes_what_its_codes_stand_for() {
    for (at, bits) in [2, 3, 4, 5, 6, 8].into_iter().enumerate() {
        for group_size in [32, 64, 128] {
            // Both names of the section, in turn.
            let name = ["quantization", "quantization_config"][at % 2];
            let said = json!({"bits": bits, "group_size": group_size});
            let pair = pair(|_| Some(affine(bits, group_size)), |config| config[name] = said);
            check(&format!("{bits} bits, groups of {group_size}"), &pair);
        }
    }
}

#[test]
fn modules_may_be_packed_each_in_its_own_way_or_not_at_all() {
    let choose = |module: &str| match module {
        "lm_head" => Some(affine(6, 64)),
        "model.embed_tokens" => Some(affine(8, 32)),
        "model.layers.0.self_attn.k_proj" => Some(affine(3, 128)),
        "model.layers.0.mlp.down_proj" | "model.layers.0.self_attn.v_proj" => None,
        _ => Some(affine(4, 64)),
    };
    let said = json!({
        "bits": 4,
        "group_size": 64,
        "mode": "affine",
        "lm_head": {"bits": 6, "group_size": 64},
        "model.embed_tokens.weight": {"bits": 8, "group_size": 32},
        "model.layers.0.self_attn.k_proj": {"bits": 3, "group_size": 128},
        "model.layers.0.mlp.down_proj": false,
        "model.layers.0.self_attn.v_proj.weight": false,
    });
    check("mixed", &pair(choose, |config| config["quantization"] = said));
    // Shapes decide where the configuration is wrong.
    let wrong = json!({"bits": 8, "group_size": 32});
    check("mixed, said otherwise", &pair(choose, |config| config["quantization"] = wrong));
}

#[test]
fn modes_of_small_floats_compute_what_their_codes_stand_for() {
    for (mode, bits, group_size, name) in
        [(Mode::Mxfp4, 4, 32, "mxfp4"), (Mode::Mxfp8, 8, 32, "mxfp8"), (Mode::Nvfp4, 4, 16, "nvfp4")]
    {
        let said = json!({"mode": name, "bits": bits, "group_size": group_size});
        let (packed, dense) =
            pair(|_| Some(Packing { mode, bits, group_size }), |config| config["quantization"] = said);
        let wanted = logits(&open(dense.path(), Precision::F32));
        check_close(name, &logits(&open(packed.path(), Precision::Auto)), &wanted, 1e-4);
        // In codes as they are, everything else in bf16, whose rounding is all that may differ.
        let rough = logits(&open(packed.path(), Precision::Bf16));
        check_close(&format!("{name}, packed"), &rough, &wanted, 0.15);
    }
}

#[test]
fn foreign_methods_are_refused_by_their_names() {
    let foreign = |name: &str, value: Value, rename: &[(&str, &str)]| {
        let mut tensors = Tensors::default();
        for (seed, (module, shape)) in (1..).zip(matrices()) {
            let packed = Packed::quantize(&weight(seed, shape), affine(4, 64));
            for (member, array) in [("weight", &packed.codes), ("scales", &packed.scales)] {
                let member = rename.iter().find(|(from, _)| *from == member).map_or(member, |(_, to)| to);
                tensors.put(format!("{module}.{member}"), array);
            }
        }
        let mut config = config();
        config["quantization_config"] = value;
        let dir = tensors.write(&config);
        let plan = Plan::identity(Checkpoint::open(dir.path()).unwrap());
        let found = load(plan, Options::default(), &mut |_| {}).map(|_| ()).unwrap_err();
        let LoadError::ForeignQuantization { method, .. } = found else { panic!("{found:?}") };
        assert!(method.contains(name), "{method}");
    };
    let qweight = [("weight", "qweight")];
    foreign("AWQ", json!({"quant_method": "awq", "bits": 4}), &qweight);
    foreign("GPTQ", json!({"quant_method": "gptq", "bits": 4}), &qweight);
    foreign("AWQ or GPTQ", Value::Null, &qweight);
    foreign("bitsandbytes", json!({"quant_method": "bitsandbytes"}), &[("scales", "SCB")]);
    foreign(
        "compressed-tensors",
        json!({"quant_method": "compressed-tensors"}),
        &[("weight", "weight_packed")],
    );
    foreign("fp8", json!({"quant_method": "fp8"}), &[("scales", "weight_scale_inv")]);
}
