//! Reads the scalars, strings and lists of a GGUF header. Checks every bound.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Maximum nesting of lists; real files have one level.
const MAX_DEPTH: u32 = 4;

/// A position in the bytes of a file.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, place: 0 }
    }

    /// Number of bytes before the cursor.
    pub(super) fn place(&self) -> usize {
        self.place
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.place..).unwrap_or_default();
        let taken = rest
            .get(..count)
            .with_context(|| format!("the file ends inside its header, at byte {}", self.place))?;
        self.place += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into()?)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A count or an offset. Refuses one that exceeds the size of the file.
    pub(super) fn size(&mut self) -> Result<usize> {
        let size = self.u64()?;
        usize::try_from(size).ok().filter(|size| *size <= self.bytes.len()).with_context(|| {
            format!("the header has a size of {size}, but the file has {} bytes", self.bytes.len())
        })
    }

    pub(super) fn text(&mut self) -> Result<String> {
        let length = self.size()?;
        let bytes = self.take(length)?;
        Ok(std::str::from_utf8(bytes).context("a string of the header is not UTF-8")?.to_owned())
    }

    /// One value of the metadata, as JSON.
    pub(super) fn value(&mut self) -> Result<Value> {
        let kind = self.u32()?;
        self.value_of(kind, 0)
    }

    fn value_of(&mut self, kind: u32, depth: u32) -> Result<Value> {
        Ok(match kind {
            0 => u8::from_le_bytes(self.array()?).into(),
            1 => i8::from_le_bytes(self.array()?).into(),
            2 => u16::from_le_bytes(self.array()?).into(),
            3 => i16::from_le_bytes(self.array()?).into(),
            4 => self.u32()?.into(),
            5 => i32::from_le_bytes(self.array()?).into(),
            6 => decimal(f32::from_le_bytes(self.array()?)),
            7 => (self.array::<1>()? != [0]).into(),
            8 => self.text()?.into(),
            9 => {
                ensure!(depth < MAX_DEPTH, "lists of the header are nested too deeply");
                let kind = self.u32()?;
                let count = self.size()?;
                (0..count).map(|_| self.value_of(kind, depth + 1)).collect::<Result<Vec<_>>>()?.into()
            }
            10 => self.u64()?.into(),
            11 => i64::from_le_bytes(self.array()?).into(),
            12 => f64::from_le_bytes(self.array()?).into(),
            _ => bail!("the header has a value of unknown type {kind}"),
        })
    }
}

/// The shortest decimal for this f32: 1e-5, not 9.999999747378752e-6.
fn decimal(number: f32) -> Value {
    number.to_string().parse::<f64>().unwrap_or(f64::NAN).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: impl Into<Option<Value>>) {
        assert_eq!(Cursor::new(bytes).value().ok(), expected.into(), "{bytes:?}");
    }

    #[test]
    fn values_are_read_with_their_types() {
        check(&[4, 0, 0, 0, 1, 2, 0, 0], Some(513.into()));
        check(&[5, 0, 0, 0, 255, 255, 255, 255], Some((-1).into()));
        check(&[7, 0, 0, 0, 1], Some(true.into()));
        check(&[8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, b'h', b'i'], Some("hi".into()));
        check(&[9, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 8], Some(vec![7, 8].into()));
        check(&[[6, 0, 0, 0], 1e-5_f32.to_le_bytes()].concat(), Some(1e-5.into()));
    }

    #[test]
    fn invalid_values_are_refused() {
        check(&[], None);
        check(&[13, 0, 0, 0], None);
        check(&[4, 0, 0, 0, 1, 2], None);
        check(&[8, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, b'h'], None);
        check(&[8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xff], None);
        let nested = [&[9, 0, 0, 0][..], &[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0].repeat(9)].concat();
        check(&nested, None);
    }
}
