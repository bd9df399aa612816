//! Converts the tensors of a llama-style GGUF to the names and the row order of MLX's llama.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use half::f16;
use safetensors::Dtype;

use super::{
    affine,
    gguf::{Format, Gguf, Tensor},
    metadata::Sizes,
};

/// A tensor as safetensors stores it.
#[derive(Debug, PartialEq)]
pub(super) struct Stored {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

/// Bits of the codes of each quantized module.
pub(super) type Bits = BTreeMap<String, usize>;

/// Converts every tensor.
pub(super) fn convert(gguf: &Gguf<'_>, sizes: &Sizes) -> Result<(BTreeMap<String, Stored>, Bits)> {
    let (mut stored, mut bits) = (BTreeMap::new(), Bits::new());
    for tensor in &gguf.tensors {
        let problem = || format!("tensor `{}` cannot be converted", tensor.name);
        let module = module(&tensor.name).with_context(problem)?;
        if tensor.format == Format::F32 {
            stored.insert(format!("{module}.weight"), vector(tensor).with_context(problem)?);
            continue;
        }
        bits.insert(module.clone(), affine::bits(tensor.format)?);
        for (suffix, part) in matrix(tensor, sizes.heads_of(&module)).with_context(problem)? {
            stored.insert(format!("{module}.{suffix}"), part);
        }
    }
    Ok((stored, bits))
}

/// The module of MLX's llama that has this tensor as its weight.
fn module(name: &str) -> Result<String> {
    let stem = name.strip_suffix(".weight").context("its name does not end with `.weight`")?;
    if let Some((layer, part)) = stem.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
        let part = match part {
            "attn_norm" => "input_layernorm",
            "attn_q" => "self_attn.q_proj",
            "attn_k" => "self_attn.k_proj",
            "attn_v" => "self_attn.v_proj",
            "attn_output" => "self_attn.o_proj",
            "ffn_norm" => "post_attention_layernorm",
            "ffn_gate" => "mlp.gate_proj",
            "ffn_up" => "mlp.up_proj",
            "ffn_down" => "mlp.down_proj",
            _ => bail!("a llama has no `{part}`"),
        };
        return Ok(format!("model.layers.{layer}.{part}"));
    }
    match stem {
        "token_embd" => Ok("model.embed_tokens".into()),
        "output_norm" => Ok("model.norm".into()),
        "output" => Ok("lm_head".into()),
        _ => bail!("a llama has no `{stem}`"),
    }
}

/// A norm. Converted to f16 like the scales if that is exact, so that the model has one dtype, like the checkpoints that MLX
/// writes. GGUF always stores norms in f32.
fn vector(tensor: &Tensor<'_>) -> Result<Stored> {
    let (words, rest) = tensor.bytes.as_chunks::<4>();
    ensure!(rest.is_empty(), "its bytes are not whole f32 values");
    let numbers: Vec<f32> = words.iter().copied().map(f32::from_le_bytes).collect();
    let halves: Vec<f16> = numbers.iter().copied().map(f16::from_f32).collect();
    let exact = numbers.iter().zip(&halves).all(|(number, half)| half.to_f32().to_bits() == number.to_bits());
    let (dtype, bytes) = if exact {
        (Dtype::F16, halves.into_iter().flat_map(f16::to_le_bytes).collect())
    } else {
        (Dtype::F32, tensor.bytes.to_vec())
    };
    Ok(Stored { dtype, shape: tensor.shape.clone(), bytes })
}

/// An affine set. With `heads`, its rows are put into the order that rotary embedding by halves expects.
fn matrix(tensor: &Tensor<'_>, heads: Option<usize>) -> Result<[(&'static str, Stored); 3]> {
    let &[rows, columns] = tensor.shape.as_slice() else { bail!("its shape is {:?}", tensor.shape) };
    let blocks = match heads {
        Some(heads) => by_halves(tensor.bytes, rows, heads)?,
        None => tensor.bytes.to_vec(),
    };
    let set = affine::convert(tensor.format, &blocks)?;
    let codes = columns * affine::bits(tensor.format)? / 32;
    let groups = columns / tensor.format.block().0;
    Ok([
        ("weight", Stored { dtype: Dtype::U32, shape: vec![rows, codes], bytes: set.codes }),
        ("scales", Stored { dtype: Dtype::F16, shape: vec![rows, groups], bytes: set.scales }),
        ("biases", Stored { dtype: Dtype::F16, shape: vec![rows, groups], bytes: set.biases }),
    ])
}

/// Undoes the row order of GGUF, which stores the two rows that rotate together next to each other: row 2j + h of a head
/// is row j of its half h.
fn by_halves(bytes: &[u8], rows: usize, heads: usize) -> Result<Vec<u8>> {
    ensure!(heads > 0 && rows.is_multiple_of(2 * heads), "{rows} rows are not {heads} heads of two halves");
    let (width, half) = (bytes.len() / rows, rows / heads / 2);
    let mut ordered = Vec::with_capacity(bytes.len());
    for row in 0..rows {
        let (head, within) = (row / (2 * half), row % (2 * half));
        let from = head * 2 * half + 2 * (within % half) + within / half;
        ordered.extend(&bytes[from * width..][..width]);
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_name(name: &str, expected: Option<&str>) {
        assert_eq!(module(name).ok().as_deref(), expected, "{name}");
    }

    #[test]
    fn names_are_those_of_llama() {
        check_name("blk.17.attn_output.weight", Some("model.layers.17.self_attn.o_proj"));
        check_name("token_embd.weight", Some("model.embed_tokens"));
        check_name("output_norm.weight", Some("model.norm"));
        check_name("rope_freqs.weight", None);
        check_name("blk.1.attn_q.bias", None);
    }

    #[test]
    fn rows_of_two_heads_go_back_to_halves() -> Result<()> {
        assert_eq!(by_halves(&[0, 2, 1, 3, 10, 12, 11, 13], 8, 2)?, [0, 1, 2, 3, 10, 11, 12, 13]);
        assert_eq!(by_halves(b"aabbccdd", 4, 1)?, b"aaccbbdd");
        assert!(by_halves(&[0; 6], 6, 2).is_err());
        Ok(())
    }

    #[test]
    fn a_norm_is_f16_only_where_that_is_exact() -> Result<()> {
        for (number, dtype) in [(1.5_f32, Dtype::F16), (0.1, Dtype::F32), (1e6, Dtype::F32)] {
            let bytes = number.to_le_bytes();
            let tensor = Tensor { name: String::new(), format: Format::F32, shape: vec![1], bytes: &bytes };
            assert_eq!(vector(&tensor)?.dtype, dtype, "{number}");
        }
        Ok(())
    }
}
