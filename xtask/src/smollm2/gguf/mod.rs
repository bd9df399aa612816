//! Parses a GGUF file: its metadata and the location of its tensors. Supports what the conversion needs: version 3,
//! little-endian, tensors in F32, `Q4_1` and `Q8_0`.

mod cursor;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use cursor::Cursor;

/// A file, parsed.
pub(super) struct Gguf<'a> {
    pub(super) metadata: Map<String, Value>,
    pub(super) tensors: Vec<Tensor<'a>>,
}

/// A vector or a row-major matrix.
#[derive(Debug)]
pub(super) struct Tensor<'a> {
    pub(super) name: String,
    pub(super) format: Format,
    /// Outermost dimension first, as in safetensors; GGUF stores the reverse.
    pub(super) shape: Vec<usize>,
    pub(super) bytes: &'a [u8],
}

/// The encoding of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    F32,
    /// Blocks of 32 numbers: a scale and a minimum in f16, then 16 bytes. The low halves of the bytes are the codes
    /// of the first 16 numbers, the high halves those of the last 16.
    Q4_1,
    /// Blocks of 32 numbers: a scale in f16, then 32 signed bytes.
    Q8_0,
}

impl Format {
    fn of(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::F32),
            3 => Some(Self::Q4_1),
            8 => Some(Self::Q8_0),
            _ => None,
        }
    }

    /// Numbers and bytes of a block.
    pub(super) fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::Q4_1 => (32, 20),
            Self::Q8_0 => (32, 34),
        }
    }

    /// The bytes of a tensor of this shape; rows hold whole blocks.
    fn bytes(self, shape: &[usize]) -> Option<usize> {
        let (numbers, bytes) = self.block();
        let (columns, outer) = shape.split_last()?;
        let row = columns.checked_div(numbers).filter(|_| columns % numbers == 0)?.checked_mul(bytes)?;
        outer.iter().try_fold(row, |product, size| product.checked_mul(*size))
    }
}

/// Parses a whole file.
pub(super) fn parse(file: &[u8]) -> Result<Gguf<'_>> {
    let mut cursor = Cursor::new(file);
    ensure!(cursor.take(4)? == b"GGUF", "the file is not a GGUF");
    let version = cursor.u32()?;
    ensure!(version == 3, "the file is GGUF version {version}, not 3");
    let (tensor_count, entry_count) = (cursor.size()?, cursor.size()?);

    let mut metadata = Map::new();
    for _ in 0..entry_count {
        let key = cursor.text()?;
        let value = cursor.value().with_context(|| format!("metadata `{key}`"))?;
        metadata.insert(key, value);
    }

    let headers = (0..tensor_count).map(|_| Header::read(&mut cursor)).collect::<Result<Vec<_>>>()?;
    let alignment = metadata.get("general.alignment").map_or(Some(32), Value::as_u64).unwrap_or_default();
    let start = usize::try_from(alignment)
        .ok()
        .and_then(|alignment| cursor.place().checked_next_multiple_of(alignment))
        .with_context(|| format!("an alignment of {alignment} is not possible"))?;
    let tensors = headers.into_iter().map(|header| header.locate(file, start)).collect::<Result<_>>()?;
    Ok(Gguf { metadata, tensors })
}

struct Header {
    name: String,
    shape: Vec<usize>,
    format: u32,
    offset: usize,
}

impl Header {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let name = cursor.text()?;
        let rank = cursor.u32()?;
        ensure!((1..=4).contains(&rank), "tensor `{name}` has {rank} dimensions");
        let mut shape = (0..rank).map(|_| cursor.size()).collect::<Result<Vec<_>>>()?;
        shape.reverse();
        Ok(Self { name, shape, format: cursor.u32()?, offset: cursor.size()? })
    }

    /// Locates the tensor's bytes; `start` is the offset of the first tensor's.
    fn locate(self, file: &[u8], start: usize) -> Result<Tensor<'_>> {
        let Self { name, shape, format, offset } = self;
        let Some(format) = Format::of(format) else {
            bail!("tensor `{name}` is stored in format {format}; F32, Q4_1 and Q8_0 are supported");
        };
        let length =
            format.bytes(&shape).with_context(|| format!("tensor `{name}` cannot have shape {shape:?}"))?;
        let bytes = start
            .checked_add(offset)
            .and_then(|start| file.get(start..)?.get(..length))
            .with_context(|| format!("tensor `{name}` is outside the file"))?;
        Ok(Tensor { name, format, shape, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one key and one tensor of two F32s, whose header ends at byte 94.
    fn file() -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend([1_u64, 1, 4].map(u64::to_le_bytes).concat());
        bytes.extend(b"size");
        bytes.extend([4_u32, 64].map(u32::to_le_bytes).concat());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(b"w");
        bytes.extend(2_u32.to_le_bytes());
        bytes.extend([2_u64, 1].map(u64::to_le_bytes).concat());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend([1.5_f32, -2.0].map(f32::to_le_bytes).concat());
        bytes
    }

    #[test]
    fn metadata_and_tensors_are_parsed() -> Result<()> {
        let file = file();
        let gguf = parse(&file)?;
        assert_eq!(gguf.metadata["size"], 64);
        let [tensor] = &gguf.tensors[..] else { bail!("one tensor") };
        assert_eq!((tensor.name.as_str(), tensor.format, &tensor.shape[..]), ("w", Format::F32, &[1, 2][..]));
        assert_eq!(tensor.bytes, [1.5_f32, -2.0].map(f32::to_le_bytes).concat());
        Ok(())
    }

    #[test]
    fn a_truncated_file_is_refused() {
        let file = file();
        for length in 0..file.len() {
            assert!(parse(&file[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn a_file_with_a_changed_byte_never_panics() {
        let file = file();
        for place in 0..file.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = file.clone();
                changed[place] = value;
                let _ = parse(&changed);
            }
        }
    }

    #[track_caller]
    fn check_bytes(format: Format, shape: &[usize], expected: Option<usize>) {
        assert_eq!(format.bytes(shape), expected, "{format:?} {shape:?}");
    }

    #[test]
    fn rows_hold_whole_blocks() {
        check_bytes(Format::F32, &[3], Some(12));
        check_bytes(Format::Q4_1, &[2, 64], Some(80));
        check_bytes(Format::Q8_0, &[2, 64], Some(136));
        check_bytes(Format::Q8_0, &[2, 48], None);
        check_bytes(Format::F32, &[usize::MAX, 2], None);
    }
}
