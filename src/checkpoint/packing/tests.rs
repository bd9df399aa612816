use super::super::{Key, ModelConfig, Origin, TensorId, TensorIndex, TensorInfo, sanitize};
use super::{AffineFormat, AffineSet, Dtype, Packing, packing};

fn index(tensors: &[(&str, Dtype, &[usize])]) -> TensorIndex {
    let origin = || Origin::Stored { shard: 0, range: 0..0 };
    let entry = |(key, dtype, shape): &(&str, Dtype, &[usize])| {
        (Key::from(*key), TensorInfo { dtype: *dtype, shape: shape.to_vec(), origin: origin() })
    };
    TensorIndex::new(tensors.iter().map(entry).collect())
}

fn config(text: &str) -> ModelConfig {
    ModelConfig::parse(text).unwrap()
}

fn packed(index: &TensorIndex, config: &ModelConfig, key: &str) -> Packing {
    packing(index, config, index.position(key).unwrap())
}

#[track_caller]
fn set(packing: Packing) -> AffineSet {
    match packing {
        Packing::Affine(set) => set,
        other => panic!("{other:?}"),
    }
}

use Dtype::{BF16, F8_E4M3, F16, F32, I32, U8, U32};

/// The format of `module`, whose codes have `words` columns and whose scales have `groups`.
#[track_caller]
fn format(module: &str, json: &str, words: usize, groups: usize) -> Option<(u64, u64)> {
    let [weight, scales, biases] = ["weight", "scales", "biases"].map(|member| format!("{module}.{member}"));
    let index =
        index(&[(&weight, U32, &[8, words]), (&scales, F16, &[8, groups]), (&biases, F16, &[8, groups])]);
    let set = set(packed(&index, &config(json), &weight));
    set.format.map(|AffineFormat { bits, group_size }| (bits, group_size))
}

const Q: &str = "model.layers.0.self_attn.q_proj";

#[test]
fn any_member_represents_the_set_and_a_linear_bias_does_not() {
    let index = index(&[
        ("p.bias", F16, &[8]),
        ("p.biases", F16, &[8, 2]),
        ("p.scales", F16, &[8, 2]),
        ("p.weight", U32, &[8, 16]),
    ]);
    let config = config(r#"{"quantization":{"bits":4,"group_size":64}}"#);
    let expected = AffineSet {
        module: "p".into(),
        codes: TensorId::new(3),
        scales: TensorId::new(2),
        biases: TensorId::new(1),
        format: Some(AffineFormat { bits: 4, group_size: 64 }),
    };
    for member in ["p.weight", "p.scales", "p.biases"] {
        assert_eq!(packed(&index, &config, member), Packing::Affine(expected.clone()), "{member}");
    }
    assert_eq!(packed(&index, &config, "p.bias"), Packing::Dense);
}

#[test]
fn every_width_and_group_size_is_known_from_config() {
    for bits in [2, 3, 4, 5, 6, 8] {
        for group in [32, 64, 128] {
            let json = format!(r#"{{"quantization":{{"bits":{bits},"group_size":{group}}}}}"#);
            let words = 256 * bits / 32;
            let expected = Some((bits as u64, group as u64));
            assert_eq!(format("p", &json, words, 256 / group), expected);
        }
    }
}

#[test]
fn overrides_go_first() {
    let json = r#"{"hidden_size":64,"quantization":{"bits":4,"group_size":64,"model.embed_tokens":{"bits":8,"group_size":32},
        "model.layers.0.self_attn.q_proj.weight":{"bits":8}}}"#;
    assert_eq!(format("model.embed_tokens", json, 16, 2), Some((8, 32)));
    assert_eq!(format(Q, json, 16, 1), Some((8, 64)));
    assert_eq!(format("model.layers.0.self_attn.k_proj", json, 8, 1), Some((4, 64)));
}

#[test]
fn a_config_that_contradicts_the_shapes_is_put_right() {
    // One product, one format: 2·32, 3·32, 5·64, 6·128, 8·128 …
    assert_eq!(format("p", r#"{"quantization":{"bits":4,"group_size":64}}"#, 16, 4), None);
    assert_eq!(format("p", r#"{"quantization":{"bits":4,"group_size":64}}"#, 6, 2), Some((3, 32)));
    assert_eq!(format("p", "{}", 8, 1), None);
    // 4·32 or 2·64: the number of inputs tells.
    let sizes = r#"{"hidden_size":128,"num_attention_heads":2,"head_dim":32,"intermediate_size":256,
        "quantization":{"bits":8,"group_size":64}}"#;
    assert_eq!(format(Q, sizes, 16, 4), Some((4, 32)));
    assert_eq!(format("model.layers.0.self_attn.o_proj", sizes, 8, 2), Some((4, 32)));
    assert_eq!(format("model.layers.0.mlp.down_proj", sizes, 32, 8), Some((4, 32)));
    assert_eq!(format("model.layers.0.mlp.down_proj", sizes, 16, 4), Some((2, 64)));
    // The towers have sizes of their own.
    assert_eq!(format("vision_tower.layers.0.self_attn.q_proj", sizes, 16, 4), None);
}

#[test]
fn a_config_that_fits_the_shapes_but_not_the_inputs_is_put_right() {
    // 4·64 and 8·32 have the same product; 128 inputs in 32 words are 8 bits.
    let json = r#"{"hidden_size":128,"quantization":{"bits":4,"group_size":64}}"#;
    assert_eq!(format(Q, json, 32, 4), Some((8, 32)));
    // Nothing fits: the configuration decides.
    assert_eq!(
        format(Q, r#"{"hidden_size":100,"quantization":{"bits":4,"group_size":64}}"#, 32, 4),
        Some((4, 64))
    );
}

#[test]
fn experts_may_share_one_tensor() {
    let name = "model.layers.0.mlp.switch_mlp.down_proj";
    let [weight, scales, biases] = ["weight", "scales", "biases"].map(|member| format!("{name}.{member}"));
    let tensors = |experts| {
        index(&[
            (&weight, U32, &[4, 8, 6]),
            (&scales, BF16, &[experts, 8, 1]),
            (&biases, BF16, &[experts, 8, 1]),
        ])
    };
    let json = config(r#"{"intermediate_size":96,"moe_intermediate_size":48}"#);
    assert!(matches!(packed(&tensors(3), &json, &weight), Packing::Incomplete(_)));
    // 192 = 6·32 = 3·64: neither 32 nor 64 inputs are known of this model.
    assert_eq!(set(packed(&tensors(4), &json, &weight)).format, None);
    let json = config(r#"{"intermediate_size":96,"moe_intermediate_size":64}"#);
    let format = set(packed(&tensors(4), &json, &weight)).format;
    assert_eq!(format, Some(AffineFormat { bits: 3, group_size: 64 }));
}

#[test]
fn a_restored_head_is_quantized_as_its_embedding() {
    let index = index(&[
        ("model.embed_tokens.biases", F16, &[8, 2]),
        ("model.embed_tokens.scales", F16, &[8, 2]),
        ("model.embed_tokens.weight", U32, &[8, 16]),
    ]);
    let config = config(
        r#"{"quantization":{"bits":4,"group_size":64,"model.embed_tokens":{"bits":8,"group_size":32},
            "lm_head":{"bits":2,"group_size":128}}}"#,
    );
    let index = sanitize(index, &config);
    let head = set(packed(&index, &config, "lm_head.scales"));
    assert_eq!(
        (head.module.as_str(), head.format),
        ("lm_head", Some(AffineFormat { bits: 8, group_size: 32 }))
    );
}

#[track_caller]
fn incomplete(tensors: &[(&str, Dtype, &[usize])], asked: &str, why: &str) {
    let index = index(tensors);
    let config = config(r#"{"quantization":{"bits":4,"group_size":32}}"#);
    assert_eq!(packed(&index, &config, asked), Packing::Incomplete(why.into()));
}

#[test]
fn sets_with_members_missing_say_which() {
    let (w, s, b): (_, _, (_, _, &[usize])) =
        (("p.weight", U32, &[8, 8][..]), ("p.scales", F16, &[8, 2][..]), ("p.biases", F16, &[8, 2]));
    incomplete(&[w, s], "p.weight", "`p` has `.scales` but no `.biases`");
    incomplete(&[w, s], "p.scales", "`p` has `.scales` but no `.biases`");
    incomplete(&[w, b], "p.biases", "`p` has `.biases` but no `.scales`");
    incomplete(&[s, b], "p.scales", "`p` has `.scales` and `.biases` but no `.weight`");
    incomplete(&[s], "p.scales", "`p` has `.scales` but no `.weight`");
    incomplete(&[b], "p.biases", "`p` has `.biases` but no `.weight`");
    let dense = ("p.weight", F16, &[8, 64][..]);
    incomplete(&[dense, s, b], "p.weight", "`p` has `.scales`, but its `.weight` is F16 and not U32 codes");
}

#[test]
fn sets_whose_members_disagree_say_how() {
    let shapes = |codes: &[usize], scales: (Dtype, &[usize]), biases: (Dtype, &[usize]), why: &str| {
        let set =
            [("p.weight", U32, codes), ("p.scales", scales.0, scales.1), ("p.biases", biases.0, biases.1)];
        incomplete(&set, "p.weight", why);
    };
    let good: (Dtype, &[usize]) = (F16, &[8, 2]);
    shapes(&[8, 8], good, (F16, &[8, 1]), "`p` has `.scales` F16 [8, 2] but `.biases` F16 [8, 1]");
    shapes(&[8, 8], good, (F32, &[8, 2]), "`p` has `.scales` F16 [8, 2] but `.biases` F32 [8, 2]");
    shapes(&[8, 8], (I32, &[8, 2]), (I32, &[8, 2]), "`p` has `.scales` of I32, which are not float");
    let fit = |codes: &str, scales: &str| {
        format!("`p` has `.weight` {codes}, to which `.scales` {scales} do not fit")
    };
    shapes(&[4, 8], good, good, &fit("[4, 8]", "[8, 2]"));
    shapes(&[8, 7], good, good, &fit("[8, 7]", "[8, 2]"));
    shapes(&[8, 0], good, good, &fit("[8, 0]", "[8, 2]"));
    shapes(&[8, 8], (F16, &[8, 0]), (F16, &[8, 0]), &fit("[8, 8]", "[8, 0]"));
    shapes(&[8], (F16, &[2]), (F16, &[2]), &fit("[8]", "[2]"));
    shapes(&[], (F16, &[]), (F16, &[]), &fit("[]", "[]"));
}

#[track_caller]
fn foreign(tensors: &[(&str, Dtype, &[usize])], json: &str, name: &str) {
    let index = index(tensors);
    let config = config(json);
    for (key, _, _) in tensors {
        let packing = packed(&index, &config, key);
        if Key::from(*key).suffix() == "bias" {
            assert_eq!(packing, Packing::Dense, "{key}");
        } else {
            assert_eq!(packing, Packing::Foreign(name.into()), "{key}");
        }
    }
}

#[test]
fn foreign_formats_are_named_whichever_member_is_asked() {
    let mx = [("p.weight", U32, &[8, 8][..]), ("p.scales", U8, &[8, 2])];
    foreign(&mx, r#"{"quantization":{"mode":"mxfp4","bits":4,"group_size":32}}"#, "mxfp4");
    foreign(&mx, r#"{"quantization":{"bits":4,"group_size":32,"p":{"mode":"nvfp4"}}}"#, "nvfp4");
    foreign(&mx, "{}", "MX scales (U8)");
    let float = [("p.weight", U32, &[8, 8][..]), ("p.scales", F16, &[8, 2])];
    foreign(&float, r#"{"quantization":{"mode":"mxfp8","bits":8,"group_size":32}}"#, "mxfp8");

    let awq = [
        ("p.bias", F16, &[8][..]),
        ("p.qweight", I32, &[64, 1]),
        ("p.qzeros", I32, &[1, 1]),
        ("p.scales", F16, &[1, 8]),
    ];
    foreign(&awq, r#"{"quantization_config":{"quant_method":"awq"}}"#, "AWQ");
    foreign(&awq, "{}", "AWQ or GPTQ");
    let gptq = [("p.g_idx", I32, &[64][..]), ("p.qweight", I32, &[8, 8]), ("p.scales", F16, &[1, 8])];
    foreign(&gptq, r#"{"quantization_config":{"quant_method":"gptq"}}"#, "GPTQ");

    foreign(&[("p.weight", F8_E4M3, &[8, 8]), ("p.weight_scale_inv", F32, &[1, 1])], "{}", "FP8 with scales");
    foreign(&[("p.weight", F8_E4M3, &[8, 8]), ("p.weight_scale", F32, &[])], "{}", "FP8 with scales");
    let packed = [
        ("p.weight_packed", I32, &[8, 1][..]),
        ("p.weight_scale", F16, &[8, 1]),
        ("p.weight_shape", I32, &[2]),
    ];
    foreign(&packed, "{}", "compressed-tensors");
    let blocks = [("e.down_proj_bias", BF16, &[2, 8][..]), ("e.down_proj_blocks", U8, &[2, 8, 1, 16])];
    assert_eq!(super::packing(&index(&blocks), &config("{}"), TensorId::new(0)), Packing::Dense);
    foreign(
        &[("e.down_proj_blocks", U8, &[2, 8, 1, 16]), ("e.down_proj_scales", U8, &[2, 8, 1])],
        r#"{"quantization_config":{"quant_method":"mxfp4"}}"#,
        "mxfp4",
    );
    let bnb =
        [("p.weight", U8, &[32, 1][..]), ("p.weight.absmax", U8, &[1]), ("p.weight.quant_map", F32, &[16])];
    foreign(&bnb, "{}", "bitsandbytes");
}

#[test]
fn plain_tensors_are_dense_whatever_their_type() {
    let index = index(&[
        ("a.weight", BF16, &[8]),
        ("b.weight", F8_E4M3, &[8]),
        ("c.weight", U32, &[8]),
        ("d.weight_scale", F32, &[8]),
        ("d.weight", F32, &[8]),
        ("e.scales", F32, &[8]),
        ("position_ids", I32, &[8]),
    ]);
    for id in index.ids() {
        assert_eq!(packing(&index, &ModelConfig::default(), id), Packing::Dense, "{id:?}");
    }
}
