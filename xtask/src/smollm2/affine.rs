//! Converts GGUF blocks to MLX's affine sets: number = scale · code + bias, in groups of 32. Nothing is rounded; blocks
//! without an exact conversion are refused.

use anyhow::{Result, bail, ensure};
use half::f16;

use super::gguf::Format;

/// A quantized matrix as MLX stores it, each part in little-endian bytes, row after row.
#[derive(Debug, Default, PartialEq)]
pub(super) struct AffineSet {
    /// u32s, each of 8 codes of 4 bits or 4 codes of 8 bits, the first code in the lowest bits.
    pub(super) codes: Vec<u8>,
    /// One f16 a group.
    pub(super) scales: Vec<u8>,
    /// One f16 a group.
    pub(super) biases: Vec<u8>,
}

/// The bits of a code.
pub(super) fn bits(format: Format) -> Result<usize> {
    match format {
        Format::Q4_1 => Ok(4),
        Format::Q8_0 => Ok(8),
        Format::F32 => bail!("F32 is not quantized"),
    }
}

/// Converts whole blocks.
pub(super) fn convert(format: Format, blocks: &[u8]) -> Result<AffineSet> {
    let mut set = AffineSet::default();
    for block in blocks.chunks_exact(format.block().1) {
        match format {
            Format::Q4_1 => set.push_q4_1(block),
            Format::Q8_0 => set.push_q8_0(block)?,
            Format::F32 => bail!("F32 is not quantized"),
        }
    }
    Ok(set)
}

impl AffineSet {
    fn push_q4_1(&mut self, block: &[u8]) {
        let (scale_and_minimum, pairs) = block.split_at(4);
        self.scales.extend(&scale_and_minimum[..2]);
        self.biases.extend(&scale_and_minimum[2..]);
        let low = pairs.chunks_exact(2).map(|pair| (pair[0] & 15) | (pair[1] << 4));
        let high = pairs.chunks_exact(2).map(|pair| (pair[0] >> 4) | (pair[1] & 0xf0));
        self.codes.extend(low.chain(high));
    }

    /// scale · q with q in −128..128 is scale · (q + 128) − 128 · scale.
    fn push_q8_0(&mut self, block: &[u8]) -> Result<()> {
        let scale = f16::from_le_bytes([block[0], block[1]]);
        let exact = -128.0 * scale.to_f32();
        let bias = f16::from_f32(exact);
        ensure!(
            bias.to_f32().to_bits() == exact.to_bits(),
            "a scale of {scale} is too large for an f16 bias"
        );
        self.scales.extend(scale.to_le_bytes());
        self.biases.extend(bias.to_le_bytes());
        self.codes.extend(block[2..].iter().map(|code| code ^ 0x80));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number `place` of a group of 32, as MLX decodes it.
    fn number(set: &AffineSet, bits: usize, place: usize) -> f32 {
        let half = |bytes: &[u8]| f16::from_le_bytes([bytes[0], bytes[1]]).to_f32();
        let per_word = 32 / bits;
        let word = &set.codes[place / per_word * 4..][..4];
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let code = (word >> (place % per_word * bits)) & ((1 << bits) - 1);
        half(&set.scales) * f32::from(u8::try_from(code).unwrap_or_default()) + half(&set.biases)
    }

    #[test]
    fn q4_1_keeps_every_number_at_its_index() -> Result<()> {
        let mut block = [f16::from_f32(0.5), f16::from_f32(-3.0)].map(f16::to_le_bytes).concat();
        // Number i has code i % 16 in the first half, 15 − i % 16 in the second.
        block.extend((0..16_u8).map(|i| i | ((15 - i) << 4)));
        let set = convert(Format::Q4_1, &block)?;
        for i in 0..16_u8 {
            assert_eq!(
                number(&set, 4, usize::from(i)).to_bits(),
                (0.5 * f32::from(i) - 3.0).to_bits(),
                "{i}"
            );
            let expected = 0.5 * f32::from(15 - i) - 3.0;
            assert_eq!(number(&set, 4, usize::from(i) + 16).to_bits(), expected.to_bits(), "{i} + 16");
        }
        Ok(())
    }

    #[test]
    fn q8_0_keeps_every_number_exactly() -> Result<()> {
        let codes = [-128_i8, -127, -1, 0, 1, 127];
        let mut block = f16::from_f32(0.25).to_le_bytes().to_vec();
        block.extend((0..32).map(|i| codes[i % 6].to_le_bytes()[0]));
        let set = convert(Format::Q8_0, &block)?;
        for i in 0..32 {
            assert_eq!(number(&set, 8, i).to_bits(), (0.25 * f32::from(codes[i % 6])).to_bits(), "{i}");
        }
        Ok(())
    }

    #[test]
    fn a_bias_beyond_f16_is_refused() {
        let mut block = f16::from_f32(1000.0).to_le_bytes().to_vec();
        block.extend([0; 32]);
        assert!(convert(Format::Q8_0, &block).is_err());
    }
}
